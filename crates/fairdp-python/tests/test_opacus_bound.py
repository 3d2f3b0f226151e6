"""Under Opacus, one record moves the sum by at most the bound of 1, or the module is refused.

Noise is off. Each case is a gradient beside the clipping: Opacus, or an earlier version of this
package, let one record move the sum by the figure in `moved`.
"""

from __future__ import annotations

import copy
import functools
import warnings

import pytest

torch = pytest.importorskip("torch")
opacus = pytest.importorskip("opacus")

from fairdp.opacus import Accountant, make_private, register
from opacus.layers import DPGRU, DPLSTM, DPRNN, DPMultiheadAttention
from torch import nn
from torch.nn import functional as F

register()

MODES = ["hooks", "ghost"]
N = 16


def records(n_inputs=5, n=N, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, n_inputs, generator=generator)
    return x, (x[:, 0] > 0).long()


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 2))


def made(module, mode="hooks", x_y=None, optimizer=None, **settings):
    x, y = x_y or records()
    engine = opacus.PrivacyEngine(accountant="fairdp")
    optimizer = optimizer or torch.optim.SGD(module.parameters(), lr=0.0)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=4)
    private, optimizer, *loss, loader = make_private(
        engine,
        module=module,
        optimizer=optimizer,
        data_loader=loader,
        method="dpsgd",
        noise_multiplier=0.0,
        settings={"clip_norm": 1.0},
        grad_sample_mode=mode,
        **settings,
    )
    return private, optimizer, loss[0] if loss else nn.CrossEntropyLoss(), engine


def clipped_sum(private, optimizer, loss, x, y):
    """The sum of a batch before the noise; the batch is then given up."""
    optimizer.zero_grad()
    loss(private(x), y).backward()
    optimizer.clip_and_accumulate()
    total = torch.cat([p.summed_grad.reshape(-1) for p in optimizer.params]).clone()
    optimizer.zero_grad()
    return total


def moved(private, optimizer, loss, x, y):
    """How far any one record moves the sum when it is left out."""
    whole = clipped_sum(private, optimizer, loss, x, y)
    without = []
    for record in range(len(y)):
        kept = [i for i in range(len(y)) if i != record]
        without.append(clipped_sum(private, optimizer, loss, x[kept], y[kept]))
    return max(float((whole - part).norm()) for part in without)


@pytest.mark.filterwarnings("ignore")
class TestBound:
    @pytest.mark.parametrize("mode", MODES)
    def test_a_plain_network_reaches_the_bound_and_no_more(self, mode):
        x, y = records()
        assert 0.9 < moved(*made(network(), mode)[:3], 100 * x, y) <= 1 + 1e-5

    @pytest.mark.parametrize("criterion", [None, nn.CrossEntropyLoss(label_smoothing=0.1)])
    def test_ghost_is_hooks_to_rounding(self, criterion):
        x, y = records()
        sums = [clipped_sum(*made(network(), mode, criterion=criterion)[:3], x, y) for mode in MODES]
        torch.testing.assert_close(*sums, rtol=1e-4, atol=1e-5)


class Scaled(nn.Module):
    """A layer that Opacus differentiates by functorch, with one inside."""

    def __init__(self):
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(5)), nn.Linear(5, 2)

    def forward(self, x):
        return self.inner(self.scale * x)


class Recurrent(nn.Module):
    def __init__(self, kind, packed=False):
        super().__init__()
        self.rnn, self.head, self.packed = kind(5, 4, batch_first=True), nn.Linear(4, 2), packed

    def forward(self, x):
        if self.packed:
            lengths = torch.arange(len(x)) % 3 + 1
            x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out = nn.utils.rnn.pad_packed_sequence(self.rnn(x)[0], batch_first=True, total_length=3)[0]
            return self.head(out.sum(1))
        return self.head(self.rnn(x)[0][:, -1])


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = DPMultiheadAttention(4, 2, batch_first=True)
        self.norm, self.head = nn.LayerNorm(4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.norm(self.attention(x, x, x)[0]).mean(1))


def tokens(n=N):
    return torch.randint(0, 7, (n, 3), generator=torch.Generator().manual_seed(1))


def noise(*shape):
    return 3 * torch.randn(N, *shape, generator=torch.Generator().manual_seed(1))


ARCHITECTURES = {
    "embedding": lambda: (nn.Sequential(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 2)), tokens()),
    "embedding by frequency": lambda: (
        nn.Sequential(nn.Embedding(7, 4, scale_grad_by_freq=True), nn.Flatten(), nn.Linear(12, 2)),
        tokens(),
    ),
    "sequence": lambda: (nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Flatten(), nn.Linear(12, 2)), noise(3, 5)),
    "convolution": lambda: (
        nn.Sequential(nn.Conv2d(1, 4, 3), nn.GroupNorm(2, 4), nn.Tanh(), nn.Flatten(), nn.Linear(36, 2)),
        noise(1, 5, 5),
    ),
    "functorch": lambda: (nn.Sequential(nn.Linear(5, 5), nn.Tanh(), Scaled()), noise(5)),
    "lstm": lambda: (Recurrent(DPLSTM), noise(3, 5)),
    "gru": lambda: (Recurrent(DPGRU), noise(3, 5)),
    "packed": lambda: (Recurrent(DPRNN, packed=True), noise(3, 5)),
    "attention": lambda: (Attending(), noise(3, 4)),
    "one layer": lambda: (nn.Linear(5, 2), noise(5)),
    "no bias": lambda: (nn.Sequential(nn.Linear(5, 4, bias=False), nn.Tanh(), nn.Linear(4, 2, bias=False)), noise(5)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_layers_of_every_kind_are_summed_as_they_are_measured(name):
    torch.manual_seed(1)
    module, x = ARCHITECTURES[name]()
    y = torch.arange(N) % 2
    sums = []
    for mode in MODES:
        private, optimizer, loss, _ = made(copy.deepcopy(module), mode, (x, y))
        sums.append(clipped_sum(private, optimizer, loss, x, y))
        assert name == "packed" or moved(private, optimizer, loss, x, y) <= 1 + 1e-4
        # Opacus's attention takes no empty batch.
        if name not in ("packed", "attention"):
            assert not clipped_sum(private, optimizer, loss, x[:0], y[:0]).any()
    torch.testing.assert_close(*sums, rtol=1e-3, atol=1e-4)


class Tied(nn.Module):
    """A head that is the embedding's weight."""

    def __init__(self, use):
        super().__init__()
        self.emb, self.fc, self.use = nn.Embedding(7, 5), nn.Linear(5, 5), use

    def forward(self, x):
        h = self.fc(self.emb(x).mean(1))
        return self.use(h, self.emb.weight)


USES = {
    "F.linear": lambda h, w: F.linear(h, w),  # moved 1.36 in ghost mode
    "matmul": lambda h, w: h @ w.t(),
    "einsum": lambda h, w: torch.einsum("ni,oi->no", h, w),
    "addmm": lambda h, w: torch.addmm(torch.zeros(7), h, w.T),
    "times": lambda h, w: (h[:, None, :] * w).sum(-1),
    "penalty in the output": lambda h, w: torch.cat([h, h[:, :2]], 1) + w.square().sum(),
    "clone": lambda h, w: F.linear(h, w.clone()),
    "a view": lambda h, w: F.linear(h, w.view(7, 5)[:]),
    "out of the module": lambda h, w: w.sum(dim=1).expand(len(h), 7) + h.sum() * 0,
}


class Doubling(torch.autograd.Function):
    @staticmethod
    def forward(ctx, h, w):
        ctx.save_for_backward(h, w)
        return h @ w.t()

    @staticmethod
    def backward(ctx, gradient):
        h, w = ctx.saved_tensors
        return gradient @ w, 2 * gradient.t() @ h


USES["a function of one's own"] = Doubling.apply


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("use", USES)
def test_a_use_of_a_parameter_beside_its_layer_is_refused(use, mode):
    x = torch.randint(0, 7, (N, 3), generator=torch.Generator().manual_seed(1))
    private, optimizer, loss, _ = made(Tied(USES[use]), mode, (x, x[:, 0]))
    with pytest.raises(ValueError, match="emb.weight is used outside the layer that owns it"):
        loss(private(x), x[:, 0]).backward()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_a_use_in_the_loop_or_the_criterion_is_refused_or_without_effect(mode):
    x, y = records()
    private, optimizer, loss, _ = made(nn.Sequential(nn.Linear(5, 5), nn.Tanh(), nn.Linear(5, 5)), mode)
    last = private._module[2].weight
    if mode == "ghost":
        with pytest.raises(ValueError, match="2.weight is used outside"):
            loss(F.linear(private(x), last), y).backward()
    else:
        # Its own gradient is left out; what passes through the layers is clipped.
        use = lambda outputs, labels: F.cross_entropy(F.linear(outputs, last), labels)
        assert moved(private, optimizer, use, x, y) <= 1 + 1e-5
    module = network()
    penalised = lambda outputs, labels: F.cross_entropy(outputs, labels, reduction="none") + module[0].weight.square().sum()
    private, optimizer, loss, _ = made(module, mode, criterion=penalised)
    with pytest.raises(ValueError, match="0.weight is used outside"):
        loss(private(x), y).backward()


@pytest.mark.filterwarnings("ignore")
def test_weights_tied_by_modules_are_for_hooks_mode():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.head = nn.Embedding(7, 5), nn.Linear(5, 7, bias=False)
            self.head.weight = self.emb.weight

        def forward(self, x):
            return self.head(self.emb(x).mean(1))

    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.head = nn.Linear(5, 5), nn.Linear(5, 2)

        def forward(self, x):
            return self.head(self.fc(torch.tanh(self.fc(x))))

    tokens = torch.randint(0, 7, (N, 3), generator=torch.Generator().manual_seed(1))
    for module, (x, y) in ((Shared(), (tokens, tokens[:, 0])), (Twice(), records())):
        private, optimizer, loss, _ = made(copy.deepcopy(module), "hooks", (x, y))
        assert moved(private, optimizer, loss, x, y) <= 1 + 1e-5
        private, optimizer, loss, _ = made(module, "ghost", (x, y))
        with pytest.raises((ValueError, NotImplementedError), match="more than once|tying"):
            loss(private(x), y).backward()


def weight_normed():
    module = network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nn.utils.weight_norm(module[0])
    return module


def parametrized(bias):
    module = nn.Sequential(nn.Linear(5, 8, bias=bias), nn.Tanh(), nn.Linear(8, 2))
    nn.utils.parametrizations.weight_norm(module[0])
    return module


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("build", [weight_normed, functools.partial(parametrized, True), functools.partial(parametrized, False)])
def test_parametrizations_are_bounded_or_refused(build, mode):
    x, y = records()
    try:
        bound = moved(*made(build(), mode)[:3], 100 * x, y)
    except ValueError as error:
        assert "outside the layer that owns it" in str(error) or "has no input by record" in str(error)
    else:
        assert bound <= 1 + 1e-5


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
class TestParameters:
    def test_unfrozen_after_make_private(self, mode):  # moved 1.64
        module = network()
        module[0].requires_grad_(False)
        private, optimizer, loss, _ = made(module, mode)
        module[0].requires_grad_(True)
        with pytest.raises(ValueError, match="0.weight needs a gradient now and did not when make_private"):
            clipped_sum(private, optimizer, loss, *records())

    def test_unfrozen_in_a_layer_that_is_hooked(self, mode):
        module = network()
        module[0].weight.requires_grad_(False)
        private, optimizer, loss, _ = made(module, mode)
        module[0].weight.requires_grad_(True)
        with pytest.raises(ValueError, match="0.weight needs a gradient now"):
            clipped_sum(private, optimizer, loss, *records())

    @pytest.mark.parametrize("inner", [True, False])
    def test_add_param_group(self, mode, inner):  # moved 2.39
        x, y = records()
        private, optimizer, loss, _ = made(network(), mode)
        extra = nn.Linear(2, 2)
        (optimizer.original_optimizer if inner else optimizer).add_param_group({"params": list(extra.parameters())})
        with pytest.raises(ValueError, match="no parameter of the module"):
            clipped_sum(private, optimizer, lambda outputs, y: loss(extra(outputs), y), x, y)

    def test_a_layer_that_was_added_or_replaced(self, mode):
        x, y = records()
        for change in (
            lambda module: module.append(nn.Linear(2, 2)),
            lambda module: module.__setitem__(2, nn.Linear(8, 2)),
            lambda module: setattr(module[0], "weight", nn.Parameter(torch.ones(8, 5))),
        ):
            module = network()
            private, optimizer, loss, _ = made(module, mode)
            change(module)
            with pytest.raises(ValueError, match="needs a gradient now"):
                clipped_sum(private, optimizer, loss, x, y)

    def test_frozen_later(self, mode):
        module = network()
        private, optimizer, loss, _ = made(module, mode)
        module[0].requires_grad_(False)
        with pytest.raises(ValueError, match="0.weight was trainable when make_private was called"):
            clipped_sum(private, optimizer, loss, *records())

    def test_trained_without_the_optimizer(self, mode):
        module = network()
        with pytest.raises(ValueError, match="0.weight needs a gradient, but the optimizer has it not"):
            made(module, mode, optimizer=torch.optim.SGD(module[2].parameters(), lr=0.1))
        module[0].requires_grad_(False)
        assert moved(*made(module, mode)[:3], *records()) <= 1 + 1e-5

    def test_a_copy_is_not_trained(self, mode):
        x, y = records()
        private, optimizer, loss, _ = made(network(), mode)
        other = copy.deepcopy(private)
        with pytest.raises(ValueError, match="a copy of one that was made private"):
            clipped_sum(other, optimizer, loss, x, y)
        assert moved(private, optimizer, loss, x, y) <= 1 + 1e-5

    def test_a_layer_with_a_forward_of_its_own(self, mode):
        """The sum is of the layers' inputs and output gradients, as their norms are."""
        x, y = records()
        module = network()
        weight, bias = module[0].weight, module[0].bias
        module[0].forward = lambda inputs: F.linear(inputs, 100 * weight, bias)
        assert moved(*made(module, mode)[:3], x, y) <= 1 + 1e-5
        module = network()
        module[0].register_forward_hook(lambda layer, inputs, output: 100 * output)
        assert moved(*made(module, mode)[:3], x, y) <= 1 + 1e-5

    def test_what_mixes_records_or_changes_without_noise(self, mode):
        for norm in (nn.BatchNorm1d(8, affine=False), nn.BatchNorm1d(8, affine=False, track_running_stats=False)):
            with pytest.raises(ValueError, match="mixes the records"):
                made(nn.Sequential(nn.Linear(5, 8), norm, nn.Linear(8, 2)), mode)
        frozen = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8).requires_grad_(False), nn.Linear(8, 2))
        frozen[1].eval()
        private, optimizer, loss, _ = made(frozen, mode)
        assert moved(private, optimizer, loss, *records()) <= 1 + 1e-5
        private.train()
        with pytest.raises(ValueError, match="mixes the records"):
            private(records()[0])
        tokens = torch.randint(0, 7, (N, 3), generator=torch.Generator().manual_seed(1))
        shrinking = nn.Sequential(nn.Embedding(7, 5, max_norm=0.1), nn.Flatten(), nn.Linear(15, 2))
        private, *_ = made(shrinking, mode, (tokens, tokens[:, 0]))
        with pytest.raises(ValueError, match="changes 0.weight in place"):
            private(tokens)

    def test_compiled(self, mode):
        with pytest.raises(ValueError, match="compiled"):
            made(torch.compile(network()), mode)
        module = network()
        module[0].compile()
        with pytest.raises(ValueError, match="compiled"):
            made(module, mode)
        private, *_ = made(network(), mode)
        private._module.compile()
        with pytest.raises(ValueError, match="compiled"):
            private._module._call_impl(records()[0])

    def test_twice_private(self, mode):
        module = network()
        private, *_ = made(module, mode)
        for again in (private, module):
            with pytest.raises(ValueError, match="made private before"):
                made(again, mode)
        made(private.to_standard_module(), mode)

    def test_a_refused_module_keeps_no_hooks(self, mode):
        module = network()
        module.append(nn.BatchNorm1d(2, affine=False))
        with pytest.raises(ValueError, match="mixes"):
            made(module, mode)
        made(module[:3], mode)


SCALES = {
    "loss + t": lambda loss, t: loss + t,
    "t + loss": lambda loss, t: t + loss,
    "loss - t": lambda loss, t: loss - t,
    "loss * t": lambda loss, t: loss * t,
    "t * loss": lambda loss, t: t * loss,
    "loss / t": lambda loss, t: loss / t,
    "torch.add": lambda loss, t: torch.add(loss, t),
    "torch.mul": lambda loss, t: torch.mul(t, loss),
    "torch.stack": lambda loss, t: torch.stack([loss, t]).sum(),
    "sum": lambda loss, t: sum([loss, t]),
    "sum the other way": lambda loss, t: sum([t, loss]),
    "+=": lambda loss, t: loss.__iadd__(t),
    "two losses": lambda loss, t: loss + loss,
    "by a number": lambda loss, t: 2.0 * loss,
    "by its own value": lambda loss, t: loss / loss.item(),
    "by a number of NumPy": lambda loss, t: t.detach().numpy() * loss,
    "minus": lambda loss, t: -loss,
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", SCALES)
def test_a_loss_by_record_takes_no_arithmetic(name, mode):  # moved up to 40
    x, y = records()
    private, optimizer, loss, _ = made(network(), mode, criterion=nn.CrossEntropyLoss())
    penalty = 10 * sum(p.square().sum() for p in private.parameters())
    with pytest.raises(TypeError, match="weight decay in the optimizer"):
        SCALES[name](loss(private(x), y), penalty)


@pytest.mark.filterwarnings("ignore")
def test_in_hooks_mode_a_term_added_to_the_loss_has_no_effect():
    x, y = records()
    private, optimizer, loss, _ = made(network())
    penalised = lambda outputs, labels: loss(outputs, labels) + 10 * sum(p.square().sum() for p in private.parameters())
    torch.testing.assert_close(
        clipped_sum(private, optimizer, penalised, x, y), clipped_sum(private, optimizer, loss, x, y)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_another_loss_is_refused_where_there_is_one_by_record(mode):
    x, y = records()
    private, optimizer, loss, _ = made(network(), mode, criterion=nn.CrossEntropyLoss())
    with pytest.raises(RuntimeError, match="not of the loss that make_private gave"):
        F.cross_entropy(private(x), y).backward()
    with pytest.raises(RuntimeError, match="cannot be stepped|no backward pass"):
        optimizer.step()
    optimizer.zero_grad()
    assert moved(private, optimizer, loss, x, y) <= 1 + 1e-5
    # Around the module itself: its layers' gradients are not those of a loss by record either.
    F.cross_entropy(private._module[2](torch.tanh(private._module[0](x))), y).backward()
    with pytest.raises(RuntimeError, match="no backward pass of the loss"):
        optimizer.step()
    optimizer.zero_grad()
    assert moved(private, optimizer, loss, x, y) <= 1 + 1e-5


def heavy():
    x, y = records()
    y[:], y[0] = 0, 1
    return x, y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
class TestCriteria:
    @pytest.mark.parametrize("kind", [nn.CrossEntropyLoss, nn.NLLLoss])
    def test_class_weights_with_mean_are_refused_by_name(self, mode, kind):  # moved 6.4 to 10.7
        weights = torch.tensor([1.0, 1000.0])
        with pytest.raises(ValueError, match="class weights and reduction 'mean'.*reduction='sum'"):
            made(network(), mode, criterion=kind(weight=weights))
        module = network() if kind is nn.CrossEntropyLoss else network().append(nn.LogSoftmax(1))
        summed = made(module, mode, criterion=kind(weight=weights, reduction="sum"), loss_reduction="sum")
        assert moved(*summed[:3], *heavy()) <= 1 + 1e-5

    @pytest.mark.parametrize(
        "criterion",
        [
            nn.CrossEntropyLoss(ignore_index=0),
            nn.CrossEntropyLoss(label_smoothing=0.2),
            nn.MultiMarginLoss(weight=torch.tensor([1.0, 50.0])),
            functools.partial(F.cross_entropy, weight=torch.tensor([1.0, 1000.0])),
            lambda outputs, labels: F.cross_entropy(outputs, labels, reduction="none"),
        ],
    )
    def test_terms_are_by_record(self, mode, criterion):
        assert moved(*made(network(), mode, criterion=criterion)[:3], *heavy()) <= 1 + 1e-5

    @pytest.mark.parametrize(
        "criterion",
        [
            nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0, 1000.0])),
            nn.BCEWithLogitsLoss(weight=torch.tensor([3.0, 1000.0])),
            nn.MSELoss(),
            nn.HuberLoss(),
        ],
    )
    def test_several_outputs_are_one_term(self, mode, criterion):
        x, _ = records()
        y = (x[:, :2] > 0).float()
        assert moved(*made(network(), mode, (x, y), criterion=criterion)[:3], x, y) <= 1 + 1e-5

    def test_weights_by_place_are_refused(self, mode):
        x, _ = records()
        y = (x[:, :2] > 0).float()
        private, _, loss, _ = made(network(), mode, (x, y), criterion=nn.BCEWithLogitsLoss(weight=torch.ones(N, 2)))
        with pytest.raises(ValueError, match="a value for each place in the batch"):
            loss(private(x), y)

    def test_positions_that_are_ignored_are_left_out_of_a_records_mean(self, mode):
        torch.manual_seed(2)
        x, y = torch.randn(6, 4, 5), torch.randint(0, 2, (6, 4))
        y[0, 1:] = -100
        private, optimizer, loss, _ = made(network(), mode, (x, y), criterion=nn.CrossEntropyLoss())
        flat = lambda outputs, labels: loss(outputs.reshape(-1, 2), labels.reshape(-1), shape=outputs.shape)
        across = lambda outputs, labels: loss(outputs.transpose(1, 2), labels)
        whole = clipped_sum(private, optimizer, flat, x, y)
        torch.testing.assert_close(whole, clipped_sum(private, optimizer, across, x, y))
        assert moved(private, optimizer, flat, x, y) <= 1 + 1e-5
        with torch.no_grad():
            expected = torch.stack([F.cross_entropy(private(x)[i], y[i]) for i in range(6)]).mean()
            assert float(flat(private(x), y)) == pytest.approx(float(expected), rel=1e-5)

    def test_a_number_or_another_reduction_is_refused(self, mode):
        x, y = records()
        private, _, loss, _ = made(network(), mode, criterion=lambda outputs, labels: F.cross_entropy(outputs, labels))
        with pytest.raises(ValueError, match="criterion gives a number"):
            loss(private(x), y)
        with pytest.raises(ValueError, match="reduction 'sum', expected 'mean'"):
            made(network(), mode, criterion=nn.CrossEntropyLoss(reduction="sum"))


@pytest.mark.parametrize("mode", MODES)
def test_rand_on_empty_is_refused_by_name(mode):  # moved 2
    with pytest.raises(ValueError, match="rand_on_empty is True"):
        made(network(), mode, rand_on_empty=True)


def given(engine):
    engine.accountant.step(noise_multiplier=1.0, sample_rate=0.1)
    bound = engine.accountant.bound(1e-5)
    assert bound.mark == "conditional" and "given that" in str(bound)
    return " ".join(bound.given)


def test_what_epsilon_is_conditional_on_is_said_where_it_is():
    with pytest.warns(UserWarning, match="conditional: each term of the loss depends on one record"):
        *_, engine = made(network())
    assert "term of the loss" in given(engine)
    other = Accountant()
    other.load_state_dict(engine.accountant.state_dict())
    assert other.bound(1e-5).given == engine.accountant.bound(1e-5).given
    with pytest.warns(UserWarning, match="conditional"):
        *_, engine = made(network(), criterion=lambda outputs, labels: F.cross_entropy(outputs, labels, reduction="none"))
    assert "term of the loss" in given(engine)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Secure RNG")
        *_, engine = made(network(), criterion=nn.CrossEntropyLoss())
    assert "term of the loss" not in given(engine) and "no record changes" in given(engine)


def test_opacus_own_optimizer_is_named():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine(accountant="fairdp")
        module = network()
        engine.make_private(
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            data_loader=torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*records()), batch_size=4),
            noise_multiplier=1.0,
            max_grad_norm=1.0,
        )
    assert "Opacus's own optimizer" in given(engine)
