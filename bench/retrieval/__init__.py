"""From texts to rankings: backbones, encoders, packed execution, post-processing, cross-encoders, search, fusion."""
