"""Of secrets as people paste them, nearly all are found; of harmless texts, nearly none is garbled."""

import pytest
from support.oracles.secret_corpus import samples

from bot.runtime.secrets.masking import SecretMasker

SEEDS = [1, pytest.param(2, marks=pytest.mark.full), pytest.param(3, marks=pytest.mark.full)]


@pytest.mark.parametrize("seed", SEEDS)
def test_nineteen_of_twenty_pasted_secrets_leave_nothing(seed: int) -> None:
    """Not even eight characters in a row."""
    corpus = list(samples("secret", seed))
    assert all(sample.secrets for sample in corpus)
    missed = [sample.template for sample in corpus if sample.survives(SecretMasker().mask(sample.text).text)]
    assert len(missed) * 20 <= len(corpus), missed


@pytest.mark.parametrize("seed", SEEDS)
def test_forty_nine_of_fifty_harmless_texts_are_unchanged(seed: int) -> None:
    """Hashes, ids, code, placeholders, and samples from documentation."""
    corpus = list(samples("harmless", seed))
    garbled = [sample.template for sample in corpus if SecretMasker().mask(sample.text).text != sample.text]
    assert len(garbled) * 50 <= len(corpus), garbled


def test_a_corpus_tells_what_is_left() -> None:
    """Text that is not masked leaves all secrets; the samples are the same each time."""
    assert all(sample.survives(sample.text) for sample in samples("secret", 1))
    assert list(samples("secret", 1)) == list(samples("secret", 1)) != list(samples("secret", 2))
