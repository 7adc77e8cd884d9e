"""Gemini's `generateContent` and related methods.

Its parser accepts each name in two spellings (`google_search`, `googleSearch`), so both are known together. A tool is a
name without a type, even if its object is empty. Content must be inline: no URLs, no files, nothing cached for other
jobs.
"""

import re

from bot.jobserver.egress.model_api import MODEL_ID, ModelApi, query
from bot.jobserver.egress.request_rules import fields, names, within

GEMINI = ModelApi(
    name="gemini",
    prefix="/v1beta",
    address="https://generativelanguage.googleapis.com/v1beta",
    header="x-goog-api-key",
    key_variable="GEMINI_API_KEY",
    address_variable="GOOGLE_GEMINI_BASE_URL",
    requests={
        rf"/models/(?P<model>{MODEL_ID}):(?:generateContent|streamGenerateContent){query('alt')}": "request",
        rf"/models/(?P<model>{MODEL_ID}):countTokens": "request",
    },
    shapes={
        "request": fields(
            "generationConfig model safetySettings serviceTier toolConfig tools",
            contents="content",
            systemInstruction="content",
            generateContentRequest="request",  # of countTokens
        ),
        "content": fields("role", may_be_text=True, parts="part"),
        "part": fields(
            "functionCall inlineData mediaResolution partMetadata text thought thoughtSignature videoMetadata",
            may_be_text=True,
            functionResponse="response",
        ),
        "response": within(parts="part of a response"),
        "part of a response": fields("inlineData"),
        "tool": fields("functionDeclarations", is_closed=True),
    },
    # A tool's input and output, and schemas.
    opaque=names("args parameters parametersJsonSchema response responseJsonSchema responseSchema"),
    ends=re.compile(rb'"finishReason"\s*:\s*"'),
    sent=("promptTokenCount",),
    answered=("candidatesTokenCount", "thoughtsTokenCount"),
    companions=re.compile(r"gemini-[0-9.]+-flash(?:-lite)?(?:-[0-9A-Za-z.-]+)?"),
)
