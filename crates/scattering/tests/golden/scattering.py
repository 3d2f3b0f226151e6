"""Facts for tests/suite/scattering.rs: python scattering.py > scattering.json (needs kymatio 0.3)."""
import numpy as np
import scipy.special

if not hasattr(scipy.special, "sph_harm"):  # removed from SciPy 1.17; Kymatio's 3-D part imports it
    scipy.special.sph_harm = None
import kymatio
from kymatio.numpy import Scattering2D

# height, width, channels, J, angles, order
CASES = [(28, 28, 1, 2, 8, 2), (32, 32, 3, 2, 8, 2), (17, 24, 1, 3, 6, 2), (20, 15, 1, 2, 5, 1), (16, 16, 1, 1, 4, 2)]


def image(height, width, channels):
    i = np.arange(height * width * channels, dtype=np.int64)
    return (((i * i * 31 + i * 17) % 257) / 256.0).reshape(height, width, channels)


print("{")
print(f' "generator": "kymatio {kymatio.__version__}, NumPy backend, double precision input",')
print(' "image": "v[i] = ((31 i^2 + 17 i) mod 257)/256, i counting rows, columns, channels; channels last",')
print(' "cases": [')
for number, (height, width, channels, scale, angles, order) in enumerate(CASES):
    transform = Scattering2D(J=scale, shape=(height, width), L=angles, max_order=order)
    pixels = image(height, width, channels)
    out = np.stack([transform(np.ascontiguousarray(pixels[..., c])) for c in range(channels)])
    out = out.reshape(-1, *out.shape[2:]).transpose(1, 2, 0)
    flat = out.ravel()
    indices = np.unique(np.linspace(0, len(flat) - 1, 60).astype(int))
    print(
        f'  {{"height": {height}, "width": {width}, "channels": {channels}, "log2_scale": {scale}, '
        f'"angles": {angles}, "order": {order}, "shape": {list(out.shape)}, '
        f'"sum": {flat.sum():.9e}, "square_sum": {(flat ** 2).sum():.9e},\n   "indices": {indices.tolist()},\n'
        f'   "values": [{", ".join(f"{flat[i]:.8e}" for i in indices)}]}}{"," if number + 1 < len(CASES) else ""}'
    )
print(" ]\n}")
