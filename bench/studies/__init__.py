"""Work built on runs: sweeps, ablations, few-shot curves, reproduction, external runs, exports, conformance, doctor."""
