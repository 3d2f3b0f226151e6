"""Answers rows over HTTP with the model.onnx of a release, and refuses what `fairdp predict` refuses.

    pip install numpy onnxruntime
    python serve.py RUN/release 8080
    curl -d '{"rows": [{"age": 40, "region": "east"}]}' localhost:8080

Inputs are numbers, categories and truth values; null is a missing value.
"""

import hashlib
import json
import pathlib
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import onnxruntime


class Model:
    def __init__(self, release: pathlib.Path) -> None:
        model = (release / "model.onnx").read_bytes()
        digest = json.loads((release / "statement.json").read_text("utf-8"))["files"]["model.onnx"]
        if hashlib.sha256(model).hexdigest() != digest:
            raise SystemExit("model.onnx is not the one of the statement")
        self.classes = json.loads((release / "pipeline.json").read_text("utf-8"))["schema"]["label"]["classes"]
        self.session = onnxruntime.InferenceSession(model)

    def answer(self, rows: list) -> list:
        """Probabilities, and the prediction unless it depends on the group; raises ValueError for what is refused."""
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise ValueError('expected {"rows": [{column: value, ...}, ...]}')
        feed = {column.name: self.column(column, rows) for column in self.session.get_inputs()}
        found = dict(zip((output.name for output in self.session.get_outputs()), self.session.run(None, feed)))
        if (bad := np.isnan(found["probabilities"]).any(axis=1)).any():
            raise ValueError(f"row {int(bad.argmax())} does not fit the model's schema")
        answers = [{"probabilities": dict(zip(self.classes, map(float, row)))} for row in found["probabilities"]]
        for answer, prediction in zip(answers, found.get("prediction", [])):
            answer["prediction"] = str(np.ravel(prediction)[0])
        return answers

    def column(self, column: onnxruntime.NodeArg, rows: list) -> np.ndarray:
        if missing := [place for place, row in enumerate(rows) if column.name not in row]:
            raise ValueError(f"row {missing[0]} has no column {column.name}")
        values = [row[column.name] for row in rows]
        if column.type == "tensor(float)":
            if wrong := [value for value in values if value is not None and type(value) not in (int, float)]:
                raise ValueError(f"{column.name} = {wrong[0]!r}: expected a number or null")
            return np.array([[np.nan if value is None else value] for value in values], np.float32)
        texts = ["" if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]
        return np.array([[text.strip()] for text in texts], object)


class Handler(BaseHTTPRequestHandler):
    model: Model

    def do_POST(self) -> None:
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = 200, {"answers": self.model.answer(body["rows"])}
        except (KeyError, TypeError, ValueError) as error:
            status, answer = 422, {"error": str(error)}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


if __name__ == "__main__":
    Handler.model = Model(pathlib.Path(sys.argv[1]))
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
