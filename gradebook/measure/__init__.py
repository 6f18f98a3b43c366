"""The instrument that measures what released trainers compute: it cuts their functions
out of their files, without an import, and probes them. The app reads what it wrote,
trainers/measured.jsonl, and imports nothing from here."""
