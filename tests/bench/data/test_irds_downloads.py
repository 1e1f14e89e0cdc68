"""Downloads of ir_datasets: those of the hub ask the endpoint, with its token; others, and what is here, do not."""

from pathlib import Path

import pytest
from ir_datasets.formats import TsvDocs
from ir_datasets.util import Download, GzipExtract, RequestsDownload

from bench.data.formats.irds_downloads import by_endpoint

PATH = "/datasets/owner/name/resolve/main/docs.tsv.gz"


@pytest.mark.parametrize(
    ("variables", "url", "headers"),
    [
        ({}, f"https://huggingface.co{PATH}", None),
        ({"HF_ENDPOINT": "http://mirror.example/"}, f"http://mirror.example{PATH}", None),
        ({"HF_TOKEN": "hf_x"}, f"https://huggingface.co{PATH}", {"Authorization": "Bearer hf_x"}),
    ],
)
def test_endpoint_and_token(
    variables: dict[str, str],
    url: str,
    headers: dict[str, str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By variable: the address and headers of a file of the hub; another host hears of neither."""
    for name in ("HF_ENDPOINT", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    urls = (f"https://huggingface.co{PATH}", f"https://huggingface.co.example{PATH}")
    hub, other = (RequestsDownload(url) for url in urls)
    (tmp_path / "here").write_bytes(b"x")
    kept = RequestsDownload(urls[0])
    places = ((hub, "a"), (other, "b"), (kept, "here"))
    by_endpoint(*(TsvDocs(GzipExtract(Download([place], str(tmp_path / name)))) for place, name in places))
    assert (hub.url, hub.headers) == (url, headers)
    assert (other.url, other.headers) == (urls[1], None)
    assert (kept.url, kept.headers) == (urls[0], None)
