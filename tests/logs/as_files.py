"""Logs as files: what the readers are given."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
from logs.made import made

from gradebook.logs.read.files import LogFile


def table(frame):
    """A frame as Parquet bytes."""
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), out)
    return out.getvalue()


def of(text, name="log.csv"):
    data = text if isinstance(text, bytes) else text.encode()
    return LogFile(name, data=data)


def bytes_of(kind, log=None):
    log = made(steps=3) if log is None else log
    if kind == "parquet":
        return table(log)
    if kind == "jsonl":
        return log.to_json(orient="records", lines=True).encode()
    return log.to_csv(index=False, sep="\t" if kind == "tsv" else ",").encode()
