"""Rules for secrets whose format is distinctive, such as an issuer's prefix, and that need no name beside them."""

from bot.runtime.secrets.kinds import SecretKind
from bot.runtime.secrets.rules import BASE64, GITLEAKS, HEX, LETTERS, START, URLSAFE, SecretRule, drawn, token

_K = SecretKind

_CLOUDS = (
    *(
        token("aws-access-key-id", _K.AWS, prefix, r"[A-Z0-9]{16}(?![A-Za-z0-9])", 2.5)
        for prefix in ("AKIA", "ASIA", "ABIA", "ACCA")
    ),
    token("aws-access-key-id", _K.AWS, "A3T", r"[A-Z0-9][A-Z2-7]{16}(?![A-Za-z0-9])", 2.5, accept=drawn),
    token("aws-bedrock-key", _K.AWS, "ABSK", rf"{BASE64}{{90,269}}={{0,2}}"),
    token(
        "aws-bedrock-short-lived-key",
        _K.AWS,
        "bedrock-api-key-",
        rf"YmVkcm9jay5hbWF6b25hd3MuY29t{BASE64}{{0,3000}}={{0,2}}",
    ),
    SecretRule(
        "azure-client-secret",
        _K.AZURE,
        ("q~",),
        r"(?<![\w.~\-])(?P<secret>[\w.~]{3}[0-9]Q~[\w.~\-]{31,34})(?![\w.~\-])",
        3.0,
        ahead=4,
        source=GITLEAKS,
    ),
    token("google-api-key", _K.GOOGLE, "AIza", rf"{URLSAFE}{{35}}(?!{URLSAFE})", 3.5),
    token("google-client-secret", _K.GOOGLE, "GOCSPX-", rf"{URLSAFE}{{20,60}}"),
    token("google-access-token", _K.GOOGLE, "ya29.", r"[\w.\-]{20,2000}"),
    token("alibaba-key-id", _K.SERVICE, "LTAI", rf"{LETTERS}{{16,24}}(?!{LETTERS})", accept=drawn),
    token("digitalocean-token", _K.SERVICE, "dop_v1_", f"{HEX}{{50,64}}"),
    token("digitalocean-oauth-token", _K.SERVICE, "doo_v1_", f"{HEX}{{50,64}}"),
    token("digitalocean-refresh-token", _K.SERVICE, "dor_v1_", f"{HEX}{{50,64}}"),
    token("cloudflare-origin-ca-key", _K.SERVICE, "v1.0-", f"{HEX}{{24}}-{HEX}{{100,146}}"),
    token("flyio-token", _K.SERVICE, "fo1_", rf"{URLSAFE}{{35,43}}", accept=drawn),
    token("flyio-macaroon", _K.SERVICE, "fm1", rf"[ar]_{BASE64}{{80,3000}}={{0,3}}"),
    token("flyio-macaroon-2", _K.SERVICE, "fm2_", rf"{BASE64}{{80,3000}}={{0,3}}"),
    token("heroku-key", _K.SERVICE, "HRKU-AA", rf"{URLSAFE}{{50,58}}"),
    token("yandex-api-key", _K.SERVICE, "AQVN", rf"{URLSAFE}{{35,38}}", accept=drawn),
    token("scalingo-token", _K.SERVICE, "tk-us-", rf"{URLSAFE}{{40,48}}", accept=drawn),
    token("openshift-token", _K.SERVICE, "sha256~", rf"{URLSAFE}{{35,43}}"),
)

_CODE_HOSTS = (
    *(token("github-token", _K.GITHUB, f"gh{letter}_", f"{LETTERS}{{30,255}}") for letter in ("p", "o", "u", "s", "r")),
    token("github-fine-grained-token", _K.GITHUB, "github_pat_", r"\w{22,255}"),
    SecretRule(
        "gitlab-token",
        _K.GITLAB,
        ("gl",),
        rf"{START}(?P<secret>gl[a-z]{{2,6}}-[\w.\-]{{20,300}})",
        3.0,
        accept=drawn,
        source=GITLEAKS,
    ),
    token("gitlab-runner-registration-token", _K.GITLAB, "GR1348941", rf"{URLSAFE}{{20,30}}"),
    token("gitlab-session", _K.GITLAB, "_gitlab_session=", r"[0-9a-z]{32}"),
    token("npm-token", _K.NPM, "npm_", f"{LETTERS}{{36}}(?!{LETTERS})"),
    token("pypi-token", _K.PYPI, "pypi-", rf"{URLSAFE}{{50,1000}}"),
    token("rubygems-key", _K.SERVICE, "rubygems_", f"{HEX}{{40,48}}"),
    token("clojars-token", _K.SERVICE, "CLOJARS_", f"{LETTERS}{{50,60}}", accept=drawn),
    token("artifactory-key", _K.SERVICE, "AKCp", f"{LETTERS}{{60,69}}", 4.0),
    token("artifactory-reference-token", _K.SERVICE, "cmVmd", f"{LETTERS}{{50,59}}", 4.0),
    token("sourcegraph-token", _K.SERVICE, "sgp_", rf"(?:(?:{HEX}{{16}}|local)_)?{HEX}{{35,40}}"),
    token("sonar-token", _K.SERVICE, "squ_", f"{HEX}{{35,40}}"),
    token("sonar-project-token", _K.SERVICE, "sqp_", f"{HEX}{{35,40}}"),
    token("sonar-analysis-token", _K.SERVICE, "sqa_", f"{HEX}{{35,40}}"),
    token("octopus-key", _K.SERVICE, "API-", r"[A-Z0-9]{26}(?![A-Za-z0-9])", accept=drawn),
    token("jfrog-token", _K.SERVICE, "AKCP", f"{LETTERS}{{60,69}}", 4.0),
)

_CHAT = (
    SecretRule(
        "slack-token",
        _K.SLACK,
        ("xox",),
        r"(?i)(?<![A-Za-z0-9%\-])(?P<secret>xox[a-z](?:\.xox[bp])?-(?=[0-9\-]{0,60}[A-Za-z%])[\w%\-]{12,400})",
        2.5,
        accept=drawn,
        source=GITLEAKS,
    ),
    SecretRule(
        "slack-app-token",
        _K.SLACK,
        ("xapp-",),
        r"(?i)(?<![A-Za-z0-9\-])(?P<secret>xapp-[0-9]-[A-Za-z0-9\-]{10,400})",
        2.0,
        source=GITLEAKS,
    ),
    SecretRule(
        "slack-webhook",
        _K.SLACK_WEBHOOK,
        ("hooks.slack",),
        r"(?P<secret>hooks\.slack(?:-gov)?\.com/(?:services|triggers|workflows)/[\w/+\-]{20,300})",
        3.0,
        source=GITLEAKS,
    ),
    SecretRule(
        "teams-webhook",
        _K.WEBHOOK,
        (".webhook.office.com/",),
        r"\.webhook\.office\.com/(?P<secret>webhookb2/[\w@\-]{30,100}/IncomingWebhook/[\w/\-]{30,120})",
        source=GITLEAKS,
    ),
    SecretRule(
        "discord-webhook",
        _K.WEBHOOK,
        ("/api/webhooks/",),
        r"/api/webhooks/(?P<secret>[0-9]{15,20}/[\w\-]{50,90})",
    ),
    SecretRule(
        "zapier-webhook",
        _K.WEBHOOK,
        ("hooks.zapier.com/",),
        r"hooks\.zapier\.com/hooks/catch/(?P<secret>[\w/]{10,60})",
    ),
    SecretRule(
        "telegram-bot-token",
        _K.SERVICE,
        (":a",),
        r"(?<=[0-9]{5})(?P<secret>:A[\w\-]{34})(?![\w\-])",
        3.0,
        accept=drawn,
        source=GITLEAKS,
    ),
)

_MODELS = (
    token("openai-key", _K.MODEL_API, "sk-", rf"{URLSAFE}{{20,300}}", accept=drawn),
    token("huggingface-token", _K.SERVICE, "hf_", rf"{LETTERS}{{30,40}}(?!\w)", 3.5),
    token("huggingface-organization-token", _K.SERVICE, "api_org_", rf"{LETTERS}{{30,40}}(?!\w)", 3.5),
    token("perplexity-key", _K.MODEL_API, "pplx-", f"{LETTERS}{{40,64}}"),
    token("groq-key", _K.MODEL_API, "gsk_", f"{LETTERS}{{40,60}}"),
    token("replicate-token", _K.MODEL_API, "r8_", f"{LETTERS}{{30,45}}", accept=drawn),
)

_PAYMENT = (
    SecretRule(
        "stripe-key",
        _K.STRIPE,
        ("sk_", "rk_"),
        rf"{START}(?P<secret>[rs]k_(?:live|test|prod)_{LETTERS}{{10,250}})",
        2.0,
        source=GITLEAKS,
    ),
    token("stripe-webhook-secret", _K.STRIPE, "whsec_", r"[A-Za-z0-9+/=]{20,100}", accept=drawn),
    token("flutterwave-secret-key", _K.SERVICE, "FLWSECK_TEST-", r"[a-h0-9]{12,40}(?:-X)?"),
    token("flutterwave-public-key", _K.SERVICE, "FLWPUBK_TEST-", r"[a-h0-9]{32}-X"),
    token("square-token", _K.SERVICE, "sq0atp-", rf"{URLSAFE}{{22,60}}"),
    token("square-secret", _K.SERVICE, "sq0csp-", rf"{URLSAFE}{{22,60}}"),
    token("square-access-token", _K.SERVICE, "EAAA", rf"{URLSAFE}{{40,60}}", 3.5, accept=drawn),
    token("easypost-key", _K.SERVICE, "EZAK", f"{LETTERS}{{54}}(?!{LETTERS})"),
    token("easypost-test-key", _K.SERVICE, "EZTK", f"{LETTERS}{{54}}(?!{LETTERS})"),
    token("duffel-token", _K.SERVICE, "duffel_", r"(?:test|live)_[\w\-=]{35,43}"),
    token("shippo-token", _K.SERVICE, "shippo_", f"(?:live|test)_{HEX}{{35,40}}"),
    *(
        token("shopify-token", _K.SERVICE, prefix, f"{HEX}{{28,40}}", 2.0)
        for prefix in ("shpat_", "shpca_", "shppa_", "shpss_")
    ),
)

_SERVICES = (
    token(
        "1password-secret-key",
        _K.SERVICE,
        "A3-",
        r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    token("1password-service-token", _K.SERVICE, "ops_eyJ", rf"{BASE64}{{150,3000}}={{0,3}}"),
    token("adobe-client-secret", _K.SERVICE, "p8e-", f"{LETTERS}{{32}}"),
    token("age-secret-key", _K.PRIVATE_KEY, "AGE-SECRET-KEY-1", r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{40,58}"),
    token("airtable-token", _K.SERVICE, "pat", rf"{LETTERS}{{14}}\.{HEX}{{50,64}}"),
    token("atlassian-token", _K.SERVICE, "ATATT3", r"[\w\-=]{100,200}"),
    *(
        token(
            "authress-access-key",
            _K.SERVICE,
            prefix,
            r"[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_\-][a-z0-9\-]{10,32}\.[\w+/=\-]{30,120}",
        )
        for prefix in ("sc_", "ext_", "scauth_", "authress_")
    ),
    token("clickhouse-key", _K.SERVICE, "4b1d", f"{LETTERS}{{38}}(?!{LETTERS})"),
    token("databricks-token", _K.SERVICE, "dapi", f"{HEX}{{32}}(?:-[0-9])?"),
    token("defined-networking-token", _K.SERVICE, "dnkey-", r"[\w\-=]{26}-[\w\-=]{40,52}"),
    token("doppler-token", _K.SERVICE, "dp.pt.", f"{LETTERS}{{38,43}}", 2.0),
    token("dropbox-token", _K.SERVICE, "sl.", r"[\w\-=]{130,200}", accept=drawn),
    token("dynatrace-token", _K.SERVICE, "dt0c01.", rf"{LETTERS}{{24}}\.{LETTERS}{{50,64}}"),
    token("facebook-page-token", _K.SERVICE, "EAA", r"[MC][A-Za-z0-9]{100,400}", 3.5),
    SecretRule(
        "facebook-app-token",
        _K.SERVICE,
        ("|",),
        r"(?<=[0-9]{15})(?P<secret>\|[\w\-]{27,40})(?![\w\-])",
        3.0,
        accept=drawn,
        source=GITLEAKS,
    ),
    token("frameio-token", _K.SERVICE, "fio-u-", r"[\w\-=]{50,64}"),
    token("gocardless-token", _K.SERVICE, "live_", r"[\w\-=]{40}(?![\w\-=])", accept=drawn),
    token("grafana-key", _K.SERVICE, "eyJrIjoi", r"[A-Za-z0-9]{70,400}={0,3}"),
    token("grafana-cloud-token", _K.SERVICE, "glc_", rf"{BASE64}{{32,400}}={{0,3}}"),
    token("grafana-service-token", _K.SERVICE, "glsa_", rf"{LETTERS}{{28,32}}(?:_{HEX}{{8}})?"),
    token("harness-key", _K.SERVICE, "pat.", rf"{URLSAFE}{{22}}\.{LETTERS}{{24}}\.{LETTERS}{{20}}"),
    token("harness-service-key", _K.SERVICE, "sat.", rf"{URLSAFE}{{22}}\.{LETTERS}{{24}}\.{LETTERS}{{20}}"),
    SecretRule(
        "terraform-token",
        _K.SERVICE,
        (".atlasv1.",),
        r"(?P<secret>[A-Za-z0-9]{14}\.atlasv1\.[\w\-=]{50,70})",
        3.5,
        ahead=14,
        source=GITLEAKS,
    ),
    token("infracost-token", _K.SERVICE, "ico-", rf"(?<!\.ico-){LETTERS}{{32}}(?!{LETTERS})", accept=drawn),
    token("intra42-client-secret", _K.SERVICE, "s-s4t2ud-", f"{HEX}{{50,64}}"),
    token("intra42-client-secret", _K.SERVICE, "s-s4t2af-", f"{HEX}{{50,64}}"),
    token("linear-key", _K.SERVICE, "lin_api_", f"{LETTERS}{{35,40}}", 2.0),
    token("mailchimp-key", _K.SERVICE, "key-", f"{HEX}{{32}}(?!{LETTERS})"),
    token("mapbox-token", _K.SERVICE, "sk.eyJ", rf"{URLSAFE}{{50,200}}\.{URLSAFE}{{20,24}}"),
    SecretRule(
        "mailchimp-key",
        _K.SERVICE,
        ("-us",),
        r"(?<![A-Za-z0-9])(?P<secret>[0-9a-f]{32}-us[0-9]{1,2})(?![A-Za-z0-9])",
        2.0,
        ahead=32,
        source=GITLEAKS,
    ),
    SecretRule(
        "maxmind-key",
        _K.SERVICE,
        ("_mmk",),
        r"(?<![A-Za-z0-9])(?P<secret>[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk)",
        3.5,
        ahead=36,
        source=GITLEAKS,
    ),
    *(
        token("new-relic-key", _K.SERVICE, prefix, r"[A-Za-z0-9\-]{19,42}", accept=drawn)
        for prefix in ("NRAK-", "NRII-", "NRJS-")
    ),
    token("notion-token", _K.SERVICE, "ntn_", f"[0-9]{{11}}{LETTERS}{{28,35}}"),
    token("planetscale-token", _K.SERVICE, "pscale_tkn_", r"[\w=.\-]{28,64}"),
    token("planetscale-oauth-token", _K.SERVICE, "pscale_oauth_", r"[\w=.\-]{28,64}"),
    token("planetscale-password", _K.SERVICE, "pscale_pw_", r"[\w=.\-]{28,64}"),
    token("postman-key", _K.SERVICE, "PMAK-", f"{HEX}{{24}}-{HEX}{{28,34}}"),
    token("prefect-key", _K.SERVICE, "pnu_", f"{LETTERS}{{30,36}}", 2.0),
    token("pulumi-token", _K.SERVICE, "pul-", f"{HEX}{{35,40}}", 2.0),
    token("readme-key", _K.SERVICE, "rdme_", r"[a-z0-9]{60,70}", 2.0),
    token("sendgrid-key", _K.SERVICE, "SG.", r"[\w=.\-]{55,70}", accept=drawn),
    token("sendinblue-key", _K.SERVICE, "xkeysib-", f"{HEX}{{64}}-{LETTERS}{{12,16}}", 2.0),
    token("sentry-organization-token", _K.SERVICE, "sntrys_", r"[\w+/=.\-]{40,500}", 3.5),
    token("sentry-user-token", _K.SERVICE, "sntryu_", f"{HEX}{{55,64}}"),
    *(
        token("settlemint-token", _K.SERVICE, prefix, f"{LETTERS}{{16}}(?!{LETTERS})")
        for prefix in ("sm_aat_", "sm_pat_", "sm_sat_")
    ),
    token("supabase-key", _K.SERVICE, "sbp_", f"{HEX}{{40}}"),
    token("tailscale-key", _K.SERVICE, "tskey-", r"[A-Za-z0-9\-]{20,100}", accept=drawn),
    token("typeform-token", _K.SERVICE, "tfp_", r"[\w\-.=]{40,60}", accept=drawn),
    token("twilio-key", _K.SERVICE, "SK", r"[0-9a-f]{32}(?![A-Za-z0-9])"),
    token("vault-token", _K.SERVICE, "hvs.", rf"{URLSAFE}{{80,120}}", 3.5),
    token("vault-batch-token", _K.SERVICE, "hvb.", rf"{URLSAFE}{{120,300}}", 3.5),
    token("vault-recovery-token", _K.SERVICE, "hvr.", rf"{URLSAFE}{{80,300}}", 3.5),
    token("vault-legacy-token", _K.SERVICE, "s.", rf"{LETTERS}{{24}}(?![\w.\-])", 3.5, accept=drawn),
)

ISSUER_RULES = (*_CLOUDS, *_CODE_HOSTS, *_CHAT, *_MODELS, *_PAYMENT, *_SERVICES)
