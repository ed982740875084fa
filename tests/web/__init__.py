"""`agtrace open`: who gets in, what its pages show and never do, and how they are used in a browser."""
