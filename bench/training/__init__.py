"""The toolkit for whoever writes a trainer: losses, views, probes, and the one loop that trains, logs and resumes.

This package itself and `config` import no torch; everything else in it does.
"""

ENCODER, PASSAGES, LOG = "encoder", "passages", "log.jsonl"
"""What a training writes: the folder of the encoder, that of another one for passages, and one JSON object a line."""
