"""Settings: typed options with sources, the layers that fill them, profiles, presets, grids, search spaces."""
