"""Small files that take gigabytes, or minutes, of whoever reads them plainly."""

import io

import pyarrow as pa
import pyarrow.parquet as pq

from gradebook.logs.read.files import LogFile
from gradebook.logs.recorder import KEY, StepFacts, StreamFacts

HEADER = b"step,prompt,reward,advantage\n"


def wide_header(count: int = 10**6) -> LogFile:
    """CSV: two rows of a million empty cells."""
    return LogFile("commas.csv", data=(b"," * count + b"\n") * 2)


def quoted_header(count: int = 10**6) -> LogFile:
    """The same, behind a line end inside quotation marks."""
    return LogFile("quoted.csv", data=(b'"a,\nb"' + b"," * count + b"\n") * 2)


def short_rows(count: int = 10**6) -> LogFile:
    """CSV: a million rows without their last cell."""
    return LogFile("short.csv", data=HEADER + b"1,a,1,0\n" + b"1,a,1\n" * count)


def wrong_cells(count: int = 10**6) -> LogFile:
    """CSV: a million rows with a word for a reward."""
    return LogFile("words.csv", data=HEADER + b"1,a,1,0\n" + b"1,a,x,0\n" * count)


def empty_lists(count: int = 10**6) -> LogFile:
    """JSON: an array of a million empty lists."""
    return LogFile("lists.json", data=b"[" + b"[]," * count + b"[]]")


def scalar_lines(count: int = 10**6) -> LogFile:
    """JSON Lines: an object, then a million lines of one digit."""
    first = b'{"step": 1, "prompt": "a", "reward": 1, "advantage": 0}\n'
    return LogFile("scalars.jsonl", data=first + b"1\n" * count)


def repeated_string(count: int = 60_000, in_lists: bool = False) -> LogFile:
    """Parquet: one string of 100 KB, which 60,000 rows name; a few kilobytes."""
    text = pa.DictionaryArray.from_arrays([0] * count, ["x" * 100_000])
    ends = pa.array(range(count + 1), pa.int32())
    prompt = pa.ListArray.from_arrays(ends, text) if in_lists else text
    numbers = pa.array([0.0] * count)
    table = pa.table({"prompt": prompt, "reward": numbers, "advantage": numbers})
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd", store_schema=False)
    return LogFile("string.parquet", data=file.getvalue())


def repeated_list(count: int = 60_000) -> LogFile:
    """The same in a list on each row, as in a conversation."""
    return repeated_string(count, in_lists=True)


def compressed_recording(count: int = 50_000_000) -> LogFile:
    """A recording whose buffers are compressed, which no recorder writes."""
    rows = pa.array([0.0]).take(pa.array([0] * 1000))
    column = pa.concat_arrays([rows] * (count // 1000))
    facts = StreamFacts(rank=0, ranks=1, session=1, declared={}, types={})
    step = StepFacts(step=0, written=1).model_dump_json()
    names = ("prompt", "reward", "advantage")
    schema = pa.schema([(name, "float64") for name in names])
    schema = schema.with_metadata({KEY: facts.model_dump_json()})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    file = io.BytesIO()
    with pa.ipc.new_stream(file, schema, options=options) as stream:
        batch = pa.RecordBatch.from_arrays([column] * 3, schema=schema)
        stream.write_batch(batch, custom_metadata={KEY: step})
    return LogFile("rank0.arrows", data=file.getvalue())
