"""A released model in ONNX Runtime, from raw columns, against `fairdp predict` on the same table.

    pip install onnx==1.23.2 onnxruntime==1.32.0 numpy pandas
    fairdp predict RUN TABLE.csv --out predicted.csv
    python onnx_runtime.py RUN/release/model.onnx TABLE.csv predicted.csv

Ends with an error if a probability differs by more than 1e-5.
"""

import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd

model, table, predicted = sys.argv[1:]
onnx.checker.check_model(onnx.load(model), full_check=True)
session = onnxruntime.InferenceSession(model)
rows = pd.read_csv(table, dtype=str, keep_default_na=False)
feed = {}
for column in session.get_inputs():
    texts = rows[column.name].str.strip().values
    if column.type == "tensor(float)":
        values = np.array([float(text) if text else np.nan for text in texts], np.float32)
    else:
        values = texts.astype(object)
    feed[column.name] = values.reshape(-1, 1)
expected = pd.read_csv(predicted)
found = session.run(["probabilities"], feed)[0]
difference = np.abs(found - expected.iloc[:, 2:].values).max()
print(f"{len(rows)} rows, {len(feed)} inputs: probabilities differ by at most {difference:.1e}")
if "prediction" in [output.name for output in session.get_outputs()]:
    predictions = session.run(["prediction"], feed)[0]
    n_other = (predictions != expected.prediction.astype(str).values).sum()
    print(f"predictions that differ: {n_other}")
sys.exit(not difference <= 1e-5)
