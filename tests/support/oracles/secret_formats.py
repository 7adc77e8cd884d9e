"""The formats of secrets, from the rules of gitleaks 8 (github.com/gitleaks/gitleaks, MIT) under the same names:
formats and lengths in our own notation. `<a-f0-9*40>` is 40 random characters of that alphabet.
"""

import random
import re

PREFIXED = (
    ("1password-secret-key", "A3-<A-Z0-9*6>-<A-Z0-9*11>-<A-Z0-9*5>-<A-Z0-9*5>-<A-Z0-9*5>"),
    ("1password-service-account-token", "ops_eyJ<a-zA-Z0-9+/*250>"),
    ("adobe-client-secret", "p8e-<a-z0-9*32>"),
    ("age-secret-key", "AGE-SECRET-KEY-1<QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L*58>"),
    ("airtable-personnal-access-token", "pat<a-zA-Z0-9*14>.<a-f0-9*64>"),
    ("alibaba-access-key-id", "LTAI<a-z0-9*20>"),
    ("anthropic-admin-api-key", "sk-ant-admin01-<a-zA-Z0-9_-*93>AA"),
    ("anthropic-api-key", "sk-ant-api03-<a-zA-Z0-9_-*93>AA"),
    ("artifactory-api-key", "AKCp<A-Za-z0-9*69>"),
    ("artifactory-reference-token", "cmVmd<A-Za-z0-9*59>"),
    ("atlassian-api-token", "ATATT3<A-Za-z0-9_-*186>"),
    ("authress-service-client-access-key", "sc_<a-z0-9*5>.<a-z0-9*4>.acc_<a-z0-9-*10>.<a-z0-9+/_=-*30>"),
    ("aws-access-token", "A3T<A-Z0-9*1><A-Z2-7*16>"),
    ("aws-amazon-bedrock-api-key-long-lived", "ABSK<A-Za-z0-9+/*109>"),
    ("aws-amazon-bedrock-api-key-short-lived", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t"),
    ("azure-ad-client-secret", "<a-zA-Z0-9_~.*3><0-9*1>Q~<a-zA-Z0-9_~.-*31>"),
    ("clickhouse-cloud-api-secret-key", "4b1d<A-Za-z0-9*38>"),
    ("clojars-api-token", "CLOJARS_<a-z0-9*60>"),
    ("cloudflare-origin-ca-key", "v1.0-<a-f0-9*24>-<a-f0-9*146>"),
    ("databricks-api-token", "dapi<a-f0-9*32>"),
    ("digitalocean-access-token", "doo_v1_<a-f0-9*64>"),
    ("digitalocean-pat", "dop_v1_<a-f0-9*64>"),
    ("digitalocean-refresh-token", "dor_v1_<a-f0-9*64>"),
    ("doppler-api-token", "dp.pt.<a-z0-9*43>"),
    ("duffel-api-token", "duffel_test_<a-z0-9_-=*43>"),
    ("dynatrace-api-token", "dt0c01.<a-z0-9*24>.<a-z0-9*64>"),
    ("easypost-api-token", "EZAK<a-z0-9*54>"),
    ("easypost-test-api-token", "EZTK<a-z0-9*54>"),
    ("facebook-access-token", "<0-9*15>|<0-9a-zA-Z*27>"),
    ("facebook-page-access-token", "EAAM<a-z0-9*100>"),
    ("flutterwave-encryption-key", "FLWSECK_TEST-<a-h0-9*12>"),
    ("flutterwave-public-key", "FLWPUBK_TEST-<a-h0-9*32>-X"),
    ("flutterwave-secret-key", "FLWSECK_TEST-<a-h0-9*32>-X"),
    ("flyio-access-token", "fo1_<a-zA-Z0-9_-*43>"),
    ("frameio-api-token", "fio-u-<a-z0-9-_=*64>"),
    ("gcp-api-key", "AIza<a-zA-Z0-9_-*35>"),
    ("github-app-token", "ghs_<0-9a-zA-Z*36>"),
    ("github-fine-grained-pat", "github_pat_<a-zA-Z0-9_*82>"),
    ("github-oauth", "gho_<0-9a-zA-Z*36>"),
    ("github-pat", "ghp_<0-9a-zA-Z*36>"),
    ("github-refresh-token", "ghr_<0-9a-zA-Z*36>"),
    ("gitlab-cicd-job-token", "glcbt-<0-9a-zA-Z*2>_<0-9a-zA-Z_-*20>"),
    ("gitlab-deploy-token", "gldt-<0-9a-zA-Z_-*20>"),
    ("gitlab-feature-flag-client-token", "glffct-<0-9a-zA-Z_-*20>"),
    ("gitlab-feed-token", "glft-<0-9a-zA-Z_-*20>"),
    ("gitlab-incoming-mail-token", "glimt-<0-9a-zA-Z_-*25>"),
    ("gitlab-kubernetes-agent-token", "glagent-<0-9a-zA-Z_-*50>"),
    ("gitlab-oauth-app-secret", "gloas-<0-9a-zA-Z_-*64>"),
    ("gitlab-pat", "glpat-<a-zA-Z0-9_-*20>"),
    ("gitlab-pat-routable", "glpat-<0-9a-zA-Z_-*27>.<0-9a-z*2><0-9a-z*7>"),
    ("gitlab-ptt", "glptt-<0-9a-f*40>"),
    ("gitlab-rrt", "GR1348941<a-zA-Z0-9_-*20>"),
    ("gitlab-runner-authentication-token", "glrt-<0-9a-zA-Z_-*20>"),
    ("gitlab-scim-token", "glsoat-<0-9a-zA-Z_-*20>"),
    ("gitlab-session-cookie", "_gitlab_session=<0-9a-z*32>"),
    ("grafana-api-key", "eyJrIjoi<A-Za-z0-9*70>"),
    ("grafana-cloud-api-token", "glc_<A-Za-z0-9+/*32>"),
    ("grafana-service-account-token", "glsa_<A-Za-z0-9*32>_<A-Fa-f0-9*8>"),
    ("harness-api-key", "pat.<a-zA-Z0-9_-*22>.<a-zA-Z0-9*24>.<a-zA-Z0-9*20>"),
    ("hashicorp-tf-api-token", "<a-z0-9*14>.atlasv1.<a-z0-9-_=*60>"),
    ("heroku-api-key-v2", "HRKU-AA<0-9a-zA-Z_-*58>"),
    ("huggingface-access-token", "hf_<a-zA-Z*34>"),
    ("huggingface-organization-api-token", "api_org_<a-zA-Z*34>"),
    ("infracost-api-token", "ico-<a-zA-Z0-9*32>"),
    ("intra42-client-secret", "s-s4t2ud-<a-f0-9*64>"),
    ("jwt", "eyJ<a-zA-Z0-9*30>.eyJ<a-zA-Z0-9_-*60>.<a-zA-Z0-9_-*43>"),
    ("linear-api-key", "lin_api_<a-z0-9*40>"),
    ("maxmind-license-key", "<A-Za-z0-9*6>_<A-Za-z0-9*29>_mmk"),
    (
        "microsoft-teams-webhook",
        "https://acme.webhook.office.com/webhookb2/<a-f0-9*8>-<a-f0-9*4>-<a-f0-9*4>-<a-f0-9*4>-<a-f0-9*12>@<a-f0-9*8>-<a-f0-9*4>-<a-f0-9*4>-<a-f0-9*4>-<a-f0-9*12>/IncomingWebhook/<a-f0-9*32>/<a-f0-9*8>-<a-f0-9*4>-<a-f0-9*4>-<a-f0-9*4>-<a-f0-9*12>",
    ),
    ("notion-api-token", "ntn_<0-9*11><A-Za-z0-9*32><A-Za-z0-9*3>"),
    ("npm-access-token", "npm_<a-z0-9*36>"),
    ("octopus-deploy-api-key", "API-<A-Z0-9*26>"),
    ("openai-api-key", "sk-<A-Za-z0-9*20>T3BlbkFJ<A-Za-z0-9*20>"),
    ("openai-api-key", "sk-proj-<A-Za-z0-9_-*74>T3BlbkFJ<A-Za-z0-9_-*74>"),
    ("openshift-user-token", "sha256~<a-zA-Z0-9_-*43>"),
    ("perplexity-api-key", "pplx-<a-zA-Z0-9*48>"),
    ("planetscale-api-token", "pscale_tkn_<a-zA-Z0-9_=.-*32>"),
    ("planetscale-oauth-token", "pscale_oauth_<a-zA-Z0-9_=.-*32>"),
    ("planetscale-password", "pscale_pw_<a-zA-Z0-9_=.-*32>"),
    ("postman-api-token", "PMAK-<a-f0-9*24>-<a-f0-9*34>"),
    ("prefect-api-token", "pnu_<a-zA-Z0-9*36>"),
    ("pulumi-api-token", "pul-<a-f0-9*40>"),
    ("pypi-upload-token", "pypi-AgEIcHlwaS5vcmc<a-zA-Z0-9_-*50>"),
    ("readme-api-token", "rdme_<a-z0-9*70>"),
    ("rubygems-api-token", "rubygems_<a-f0-9*48>"),
    ("scalingo-api-token", "tk-us-<a-zA-Z0-9_-*48>"),
    ("sendgrid-api-token", "SG.<a-z0-9=_-.*66>"),
    ("sendinblue-api-token", "xkeysib-<a-f0-9*64>-<a-z0-9*16>"),
    ("sentry-org-token", "sntrys_eyJpYXQiO<a-zA-Z0-9+/*40>LCJyZWdpb25fdXJs<a-zA-Z0-9+/*40>_<a-zA-Z0-9+/*43>"),
    ("sentry-user-token", "sntryu_<a-f0-9*64>"),
    ("settlemint-application-access-token", "sm_aat_<a-zA-Z0-9*16>"),
    ("settlemint-personal-access-token", "sm_pat_<a-zA-Z0-9*16>"),
    ("settlemint-service-access-token", "sm_sat_<a-zA-Z0-9*16>"),
    ("shippo-api-token", "shippo_live_<a-fA-F0-9*40>"),
    ("shopify-access-token", "shpat_<a-fA-F0-9*32>"),
    ("shopify-custom-access-token", "shpca_<a-fA-F0-9*32>"),
    ("shopify-private-app-access-token", "shppa_<a-fA-F0-9*32>"),
    ("shopify-shared-secret", "shpss_<a-fA-F0-9*32>"),
    ("slack-app-token", "xapp-1-<A-Z0-9*11>-<0-9*13>-<a-f0-9*64>"),
    ("slack-bot-token", "xoxb-<0-9*12>-<0-9*13>-<a-zA-Z0-9*24>"),
    ("slack-config-access-token", "xoxe.xoxp-1-<A-Z0-9*163>"),
    ("slack-config-refresh-token", "xoxe-<0-9*1>-<A-Z0-9*146>"),
    ("slack-legacy-bot-token", "xoxb-<0-9*8>-<a-zA-Z0-9*18>"),
    ("slack-legacy-workspace-token", "xoxa-2-<0-9a-zA-Z*24>"),
    ("slack-user-token", "xoxp-<0-9*10>-<0-9*10>-<0-9*10>-<a-zA-Z0-9-*28>"),
    ("slack-webhook-url", "https://hooks.slack.com/services/<A-Z0-9*9>/<A-Z0-9*11>/<A-Za-z0-9*24>"),
    ("sourcegraph-access-token", "sgp_local_<a-f0-9*40>"),
    ("square-access-token", "sq0atp-<a-zA-Z0-9_-*22>"),
    ("stripe-access-token", "sk_test_<a-zA-Z0-9*24>"),
    ("twilio-api-key", "SK<0-9a-f*32>"),
    ("vault-batch-token", "hvb.<a-zA-Z0-9_-*138>"),
    ("vault-service-token", "hvs.<a-zA-Z0-9_-*90>"),
)
"""They are recognized anywhere."""
_ASSIGNED = """
<0-9*16> <0-9*18> <a-z0-9*14> <a-z0-9*16> <a-z0-9*20> <a-z0-9*25> <a-z0-9*32> <a-z0-9*64> <a-z0-9*73> <a-f0-9*24>
<a-f0-9*32> <a-f0-9*40> <a-f0-9*64> <a-zA-Z0-9*40> <a-z0-9=_-*32> <a-z0-9=_-*64> <a-z0-9/=_+-*80> b_<a-z0-9=_-*44>
<0-9a-f*8>-<0-9a-f*4>-<0-9a-f*4>-<0-9a-f*4>-<0-9a-f*12> <0-9A-F*8>-<0-9A-F*4>-<0-9A-F*4>-<0-9A-F*4>-<0-9A-F*12>
<a-f0-9*8>:<a-f0-9*8> <a-f0-9*32>-us<0-9*1><0-9*1> <a-h0-9*32>-<a-h0-9*8>-<a-h0-9*8> <0-9*9>:A<a-z0-9_-*34>
<0-9*18>-<a-zA-Z0-9*30> su<a-zA-Z0-9*12> 00<a-zA-Z0-9_-*40> live_<a-f0-9*35> test_pub_<a-f0-9*31> key-<a-f0-9*32>
dnkey-<a-z0-9=_-*26>-<a-z0-9=_-*52> pk.<a-z0-9*60>.<a-z0-9*22> sl.<a-z0-9-=_*135> <a-z0-9*11>AAAAAAAAAA<a-z0-9-_=*43>
AAAAAAAAAAAAAAAAAAAAAA<a-zA-Z0-9%*80> tfp_<a-z0-9-_.=*59> t1.<A-Z0-9a-z_-*30>.<A-Z0-9a-z_-*86> YC<a-zA-Z0-9_-*38>
"""
ASSIGNED = _ASSIGNED.split()
"""They are recognized behind a name that denotes a secret, whoever issued them."""
_DRAWN = re.compile(r"<([^<>*]+)\*([0-9]+)>")
_RANGE = re.compile("(.)-(.)")


def fake(template: str, chance: random.Random) -> str:
    """Returns a secret of that format; every alphabet with digits contributes at least one."""
    return _DRAWN.sub(lambda match: _draw(match[1], int(match[2]), chance), template)


def _draw(alphabet: str, length: int, chance: random.Random) -> str:
    characters = _RANGE.sub(lambda match: "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1))), alphabet)
    digits = "7" if "7" in characters and length > 1 else ""
    return digits + "".join(chance.choices(characters, k=length - len(digits)))
