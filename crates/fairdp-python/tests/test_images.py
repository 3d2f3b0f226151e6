"""Images in the estimators: pixels, files, and columns of an array."""

import io

import numpy as np
import pandas
import pytest

import fairdp
from fairdp import FairDPClassifier, FairDPError, FairDPRegressor

RNG = np.random.default_rng(5)
N = 160
Y = RNG.integers(0, 2, N)
STRIPES = np.where(np.arange(10) % 2 == 0, 200, 30)
# Stripes along one axis or the other, under noise.
PIXELS = np.array(
    [np.broadcast_to(STRIPES if y else STRIPES[:, np.newaxis], (10, 10)) + RNG.integers(0, 40, (10, 10)) for y in Y],
    dtype=np.uint8,
)
DECLARED = {"epsilon": 8.0, "classes": [0, 1], "test_fraction": 0.0, "random_state": 1}
pytestmark = [
    pytest.mark.filterwarnings("ignore::fairdp.NotPrivateWarning"),
    pytest.mark.filterwarnings("ignore::fairdp.CompositionWarning"),
]


def frame(images):
    return pandas.DataFrame({"scan": images})


def test_an_image_is_the_same_in_every_form(tmp_path):
    """Arrays, columns of pixels, files and their bytes are one model, and so are their answers."""
    arrays = frame(list(PIXELS))
    of_arrays = FairDPClassifier(images={"scan": (10, 10)}, **DECLARED).fit(arrays, Y)
    assert of_arrays.score(arrays, Y) > 0.9 and of_arrays.statement_["mark"] == "certified"
    columns = PIXELS.reshape(N, 100)
    of_columns = FairDPClassifier(images={"x*": (10, 10, 1)}, **DECLARED).fit(columns, Y)
    assert of_columns.release_["model.safetensors"] == of_arrays.release_["model.safetensors"]
    assert (of_columns.predict_proba(columns.astype(float)) == of_arrays.predict_proba(arrays)).all()
    files = [png(pixels) for pixels in PIXELS]
    paths = [tmp_path / f"{record}.png" for record in range(N)]
    for path, file in zip(paths, files):
        path.write_bytes(file)
    for images in (files, paths):
        found = FairDPClassifier(images={"scan": {"height": 10, "width": 10}}, **DECLARED).fit(frame(images), Y)
        assert found.release_["model.safetensors"] == of_arrays.release_["model.safetensors"]
        assert (found.predict_proba(frame(images)) == of_arrays.predict_proba(arrays)).all()
    of_columns.save(tmp_path / "release")
    loaded = FairDPClassifier.load(tmp_path / "release")
    assert (loaded.predict_proba(columns) == of_columns.predict_proba(columns)).all()


def test_images_stand_beside_other_columns():
    table = frame(list(PIXELS)).assign(age=RNG.uniform(20, 60, N))
    declared = {**DECLARED, "epsilon": 1_000.0}
    del declared["classes"]
    numbers = FairDPRegressor(images={"scan": (10, 10)}, bounds={"age": (20, 60)}, label_bounds=(0, 2), **declared)
    numbers.fit(table, Y + 0.5)
    assert numbers.score(table, Y + 0.5) > 0.5
    gaps = table.assign(scan=[None if record == 3 else image for record, image in enumerate(table["scan"])])
    with pytest.raises(FairDPError, match="`scan`"):
        FairDPClassifier(images={"scan": (10, 10)}, bounds={"age": (20, 60)}, **DECLARED).fit(gaps, Y)
    model = FairDPClassifier(images={"scan": (10, 10)}, bounds={"age": (20, 60)}, missing="indicator", **DECLARED)
    assert model.fit(gaps, Y).score(gaps, Y) > 0.9


def test_a_network_on_pixels():
    options = {"steps": 60, "sampling_rate": 0.25, "learning_rate": 0.04}
    model = FairDPClassifier(
        images={"x*": (10, 10)}, model="network", network="esipova-cnn", method="dpsgd", method_options=options, **DECLARED
    )
    columns = PIXELS.reshape(N, 100)
    assert model.fit(columns, Y).score(columns, Y) > 0.8
    assert '"esipova-cnn"' in model.release_["pipeline.json"].decode()
    with pytest.raises(FairDPError, match="expected an additive model"):
        model.explain(columns)
    with pytest.raises(FairDPError, match="network"):
        FairDPClassifier(model="network", bounds=(0, 255), **DECLARED).fit(columns, Y)
    with pytest.raises(ValueError, match="network = 'resnet': expected one of zhao-cnn, esipova-cnn"):
        FairDPClassifier(images={"x*": (10, 10)}, model="network", network="resnet", **DECLARED).fit(columns, Y)


@pytest.mark.parametrize(
    ("images", "values", "message"),
    [
        ({"scan": (10,)}, PIXELS, r"images: 'scan' has \(10,\), expected \(height, width\)"),
        ({"scan": (10, 0)}, PIXELS, "images: width of 'scan' is 0, expected a whole number above 0"),
        ({"scan": {"height": 10, "width": 10, "depth": 1}}, PIXELS, "images: 'scan' has"),
        ({"scan": {"height": 10, "width": 10, "resize": 1}}, PIXELS, "images: resize of 'scan' is 1"),
        ({"photo": (10, 10)}, PIXELS, "images: there is no column 'photo'; there are"),
        ({"scan": (10, 10)}, PIXELS / 255, "column `scan`: record 0 has 0.* of type float64, expected whole numbers from 0"),
        ({"scan": (10, 10)}, PIXELS.astype(int) + 200, "column `scan`: record 0 has 4.*, expected whole numbers from 0"),
        ({"scan": (10, 10)}, np.arange(N), "column `scan`: record 0 is 0, expected a path"),
        ({"scan": (12, 10)}, PIXELS, "10 × 10"),
        ({"scan": (10, 10)}, ["nowhere.png"] * N, "nowhere.png"),
        ({"scan": (10, 10)}, [b"GIF89a"] * N, "neither PNG nor JPEG"),
    ],
)
def test_what_is_no_image_is_refused(images, values, message):
    with pytest.raises((ValueError, TypeError, FairDPError), match=message):
        FairDPClassifier(images=images, **DECLARED).fit(frame(list(values)), Y)


def test_columns_that_are_no_image_are_refused():
    columns = PIXELS.reshape(N, 100)
    with pytest.raises(ValueError, match=r"images: 'x\*' is of 100 columns, expected 10 × 11 × 1"):
        FairDPClassifier(images={"x*": (10, 11)}, **DECLARED).fit(columns, Y)
    with pytest.raises(TypeError, match="bounds: column `x0` is among the images"):
        FairDPClassifier(images={"x*": (10, 10)}, bounds={"x0": (0, 1)}, **DECLARED).fit(columns, Y)

    class Photo(np.ndarray):
        mode = "P"

    with pytest.raises(TypeError, match="record 0 is an image of mode 'P', expected L or RGB; convert it"):
        FairDPClassifier(images={"scan": (10, 10)}, **DECLARED).fit(frame([pixels.view(Photo) for pixels in PIXELS]), Y)


def png(pixels):
    """A grey PNG file, by its format's rules."""
    import struct
    import zlib

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    file = io.BytesIO(b"\x89PNG\r\n\x1a\n")
    file.seek(8)
    file.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)))
    file.write(chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.tobytes() for row in pixels))))
    file.write(chunk(b"IEND", b""))
    return file.getvalue()


def test_the_program_reads_what_an_estimator_saved(tmp_path):
    model = FairDPClassifier(images={"scan": (10, 10)}, **DECLARED).fit(frame(list(PIXELS)), Y)
    model.save(tmp_path / "release")
    path = tmp_path / "a.png"
    path.write_bytes(png(PIXELS[0]))
    (tmp_path / "t.csv").write_text(f"scan\n{path}\n")
    fairdp.predict(tmp_path / "release", str(tmp_path / "t.csv"), out=str(tmp_path / "p.csv"))
    found = pandas.read_csv(tmp_path / "p.csv")["p_1"][0]
    assert found == pytest.approx(model.predict_proba(frame([PIXELS[0]]))[0, 1], abs=1e-12)
