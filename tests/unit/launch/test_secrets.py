"""What is hidden on a command line, and what is not."""

from __future__ import annotations

import pytest

from hotlap.values.secrets import HIDDEN, is_secret_name, redacted, redacted_text, redacted_value

LETTERS = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"
SHA1 = "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("--api-key", "X"), ("--api-key", HIDDEN)),
        (("--api_key", "X"), ("--api_key", HIDDEN)),
        (("--apiKey=X",), (f"--apiKey={HIDDEN}",)),
        (("--token=abc",), (f"--token={HIDDEN}",)),
        (("--hf-token", "abc"), ("--hf-token", HIDDEN)),
        (("--hub_token=abc",), (f"--hub_token={HIDDEN}",)),
        (("password=hunter2",), (f"password={HIDDEN}",)),
        (("logger.wandb.password=hunter2",), (f"logger.wandb.password={HIDDEN}",)),
        (("+logger.api_key=a=b",), (f"+logger.api_key={HIDDEN}",)),
        (("env", "WANDB_API_KEY=abc", "python"), ("env", f"WANDB_API_KEY={HIDDEN}", "python")),
        (("AWS_SECRET_ACCESS_KEY=a/b+c",), (f"AWS_SECRET_ACCESS_KEY={HIDDEN}",)),
        (("AWS_ACCESS_KEY_ID=abc",), (f"AWS_ACCESS_KEY_ID={HIDDEN}",)),
        (("--password", "-x"), ("--password", HIDDEN)),
        (("wandb", "login", SHA1), ("wandb", "login", HIDDEN)),
        (("--db", "postgres://me:pw@host/x"), ("--db", f"postgres://me:{HIDDEN}@host/x")),
        ((f"https://{LETTERS}@host/x",), (f"https://{HIDDEN}@host/x",)),
        (
            ("https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature=ab12",),
            (f"https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature={HIDDEN}",),
        ),
        (
            ("--url=https://x.blob.core.windows.net/c?sv=2022&sig=aB%3D",),
            (f"--url=https://x.blob.core.windows.net/c?sv=2022&sig={HIDDEN}",),
        ),
        (("AKIAIOSFODNN7EXAMPLE",), (HIDDEN,)),
        ((f"--x=hf_{LETTERS}",), (f"--x={HIDDEN}",)),
        ((f"ghp_{LETTERS}",), (HIDDEN,)),
        ((f"sk-{LETTERS}",), (HIDDEN,)),
        ((f"sk-proj-a_b-{LETTERS}",), (HIDDEN,)),
        ((JWT,), (HIDDEN,)),
        (("-H", f"Authorization: Bearer {SHA1}"), ("-H", f"Authorization: Bearer {HIDDEN}")),
        (('{"api_key": "abc", "lr": "1"}',), (f'{{"api_key": "{HIDDEN}", "lr": "1"}}',)),
        (("--config", "{'token': 'abc'}"), ("--config", f"{{'token': '{HIDDEN}'}}")),
        (
            ("bash", "-c", "WANDB_API_KEY=abc python train.py"),
            ("bash", "-c", f"WANDB_API_KEY={HIDDEN}"),
        ),
        (
            ("bash", "-c", "cd x && WANDB_API_KEY=abc python train.py"),
            ("bash", "-c", f"cd x && WANDB_API_KEY={HIDDEN} python train.py"),
        ),
        (
            ("bash", "-c", "train.py --token abc --lr 1"),
            ("bash", "-c", f"train.py --token {HIDDEN} --lr 1"),
        ),
    ],
)
def test_hidden(words: tuple[str, ...], shown: tuple[str, ...]) -> None:
    assert redacted(words) == shown


@pytest.mark.parametrize(
    "words",
    [
        ("python", "train.py", "--lr", "3e-4", "--epochs=10"),
        ("--max-tokens", "512"),
        ("--num_tokens=512",),
        ("--tokenizer", "bert-base-uncased"),
        ("--pad_token", "<pad>"),
        ("--eos-token=</s>",),
        ("--token_ids", "1", "2"),
        ("--key", "label"),
        ("--key-dim=64",),
        ("--label-key", "y"),
        ("--use_auth_token=True",),
        ("--author", "someone"),
        ("--data", f"/data/{SHA1}/images"),
        ("--revision", SHA1),
        ("--seed=20240101",),
        ("s3://bucket/path/file.tar?versionId=3",),
        ("ssh://git@host/repository.git",),
        ("https://host:8080/path@2",),
        ("disk-cache-of-images-for-training-run-7",),
        ("sk-learn-experiment-configuration-2024",),
        ("/home/me/passwords/wordlist.txt",),
        ("data.split={train: 0.9, test: 0.1}",),
        ("--secret", "--lr"),
        ("",),
        ("-m", "pkg.train"),
    ],
)
def test_ordinary_words_stay(words: tuple[str, ...]) -> None:
    assert redacted(words) == words


def test_number_of_words_stays_and_twice_is_once() -> None:
    words = ("--api-key", "X", "a", "", f"hf_{LETTERS}", "https://a:b@c/?sig=x")
    once = redacted(words)
    assert len(once) == len(words)
    assert redacted(once) == once


@pytest.mark.parametrize("name", ["API_KEY", "apiKey", "--hf_token", "db.passwd", "SecretKey"])
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["", "--", "key", "tokens", "monkey", "token_count", "keypoints"])
def test_ordinary_names(name: str) -> None:
    assert not is_secret_name(name)


def test_value_under_a_name() -> None:
    assert redacted_value("MY_API_KEY", "abc") == HIDDEN
    assert redacted_value("OMP_NUM_THREADS", "4") == "4"
    assert redacted_value("TORCH_HOME", f"/x/hf_{LETTERS}") == f"/x/{HIDDEN}"


def test_private_key_is_hidden_whole() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"
    assert redacted_text(f"x {key}") == f"x {HIDDEN}"
