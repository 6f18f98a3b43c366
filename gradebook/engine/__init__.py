"""The correct engine, a chapter per file, and the pipeline that orders it."""
