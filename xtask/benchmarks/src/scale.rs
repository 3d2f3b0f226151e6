//! What a private step would take on many processes.
//!
//! A cost model whose compute is measured here, on one thread: a part that every process does in
//! full (the optimiser's step, by parameter), noise, and a part that is shared (records). Messages
//! cost a latency for each of their rounds and their bytes. Of few parameters one sum has an integer
//! for each, and three for each record. Of many, processes gather losses and norms, divide the sum
//! and its noise, and gather the gradient. Nothing is overlapped. Under a launcher latency and
//! bandwidth between its processes are measured too.

use std::fmt::Write as _;
use std::time::Instant;

use anyhow::Context;
use dp_clipping::noise::StepNoise;
use dp_train::Execution;
use dp_train::ranks::{Collective, DIVIDED_FROM};
use fair_report::plot::{LinePanel, Panel, Plot, Point, Series};
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::step::{self, Settings, StepModel};

/// Networks, the two batch sizes at which each is measured, and the batch that its strong scaling
/// shares.
const MEASURED: [(StepModel, [u32; 2], u32); 3] = [
    (StepModel::Mlp, [256, 2_048], 16_384),
    (StepModel::ZhaoCnn, [128, 512], 16_384),
    (StepModel::Resnet18, [32, 128], 4_096),
];
/// Records of a process in weak scaling.
const OF_A_PROCESS: u32 = 256;
const PROCESSES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Records of a piece, which one process sums.
const PIECE: u32 = 128;

/// Between processes.
struct Network {
    name: &'static str,
    /// Of one message, in milliseconds.
    latency: f64,
    /// Bytes a millisecond.
    bandwidth: f64,
}

/// Round figures of what such networks are sold as; no measurement.
const ASSUMED: [Network; 2] = [
    Network { name: "10 Gbit/s Ethernet", latency: 0.05, bandwidth: 1.1e6 },
    Network { name: "200 Gbit/s InfiniBand", latency: 0.003, bandwidth: 2.2e7 },
];

/// Eight H100 in one machine, assumed: no card has run it. NVLink at half of its 450 GB/s, single
/// precision at 40 % of 60 TFLOP/s, and what every card does in full bound by 3 TB/s of memory, at 28
/// bytes a parameter.
const CARDS: (Network, f64, f64) =
    (Network { name: "8 × H100, NVLink", latency: 0.02, bandwidth: 2.25e8 }, 0.4 * 60e12 * 1e-3, 28.0 / (3e12 * 1e-3));

/// What a step costs, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Cost {
    in_full: f64,
    noise: f64,
    record: f64,
    n_parameters: f64,
    /// Whether processes divide the sum and its noise.
    divides: bool,
}

impl Cost {
    /// Through two measurements, in milliseconds, at two batch sizes, of which the noise takes so
    /// much.
    fn through([small, large]: [(u32, f64); 2], noise: f64, n_parameters: usize) -> Self {
        let record = ((large.1 - small.1) / f64::from(large.0 - small.0)).max(0.0);
        let in_full = (small.1 - record * f64::from(small.0) - noise).max(0.0);
        let divides = n_parameters >= DIVIDED_FROM;
        Self { in_full, noise, record, n_parameters: n_parameters as f64, divides }
    }

    /// Of a step of so many records on so many processes. The one with the most pieces is waited
    /// for.
    fn step(&self, network: &Network, processes: u32, batch: u32) -> f64 {
        let of_one = (batch.div_ceil(PIECE).div_ceil(processes) * PIECE).min(batch);
        let n = f64::from(processes);
        let noise = if self.divides { self.noise / n } else { self.noise };
        let compute = self.in_full + noise + self.record * f64::from(of_one);
        if processes == 1 {
            return compute;
        }
        let rounds = n.log2().ceil();
        let bytes = |of_all: f64| of_all * (n - 1.0) / n / network.bandwidth;
        // Loss, norm and group of a record.
        let of_records = 24.0 * f64::from(batch);
        if !self.divides {
            // Round once to be added, and once to be told.
            return compute + 2.0 * (rounds * network.latency + bytes(8.0 * self.n_parameters + of_records));
        }
        // All but its own records reach a process; and of the gradient, lengths and single precision.
        let gathered = 3.0 * rounds * network.latency + bytes(of_records + 4.0 * self.n_parameters);
        compute + gathered + self.exchange(network, processes)
    }

    /// Of the sum that processes divide: lengths, then integers from each to each.
    fn exchange(&self, network: &Network, processes: u32) -> f64 {
        let n = f64::from(processes);
        let bytes = 8.0 * self.n_parameters * (n - 1.0) / n;
        (n.log2().ceil() + n - 1.0) * network.latency + bytes / network.bandwidth
    }

    /// Share of a step that it would be shorter by if the exchange cost nothing.
    fn hidden(&self, network: &Network, processes: u32, batch: u32) -> f64 {
        if processes == 1 || !self.divides {
            return 0.0;
        }
        self.exchange(network, processes) / self.step(network, processes, batch)
    }

    /// Share of the ideal: the step of one process, over all of them, over their step together.
    fn strong(&self, network: &Network, processes: u32, batch: u32) -> f64 {
        self.step(network, 1, batch) / (f64::from(processes) * self.step(network, processes, batch))
    }

    /// Share of the ideal where the batch grows with the processes.
    fn weak(&self, network: &Network, processes: u32, of_one: u32) -> f64 {
        self.step(network, 1, of_one) / self.step(network, processes, of_one * processes)
    }
}

/// What was measured.
pub struct Scaling {
    networks: Vec<Network>,
    costs: Vec<(StepModel, u32, Cost)>,
}

/// Measures so many steps of each network and batch size, and messages between the processes of a
/// launcher.
///
/// # Errors
/// If a step fails.
pub fn measure(steps: u32, ranks: &dyn Collective) -> anyhow::Result<Scaling> {
    let mut networks: Vec<Network> = Vec::new();
    if ranks.size() > 1 {
        networks.push(between_processes(ranks)?);
    }
    networks.extend(ASSUMED);
    let mut costs = Vec::new();
    for (model, batches, shared) in MEASURED {
        let at = |batch| -> anyhow::Result<_> {
            let step = step::measure(&Settings::private(model, batch, steps), &Execution::default())?;
            Ok(((batch, step.ms_per_step), step.n_parameters))
        };
        let (small, large) = (at(batches[0])?, at(batches[1])?);
        let noise = noise_of(small.1, steps);
        costs.push((model, shared, Cost::through([small.0, large.0], noise, small.1)));
    }
    Ok(Scaling { networks, costs })
}

/// Milliseconds of the noise of so many parameters on one thread, the median of so many.
fn noise_of(n_parameters: usize, times: u32) -> f64 {
    let noise = StepNoise::draw(&mut ChaCha20Rng::seed_from_u64(1), 1.0);
    let (exact, mut noisy) = (vec![0.0; n_parameters], vec![0.0_f32; n_parameters]);
    let mut milliseconds: Vec<f64> = (0..times.max(1))
        .map(|_| {
            let started = Instant::now();
            noise.add_exact(0, &exact, &mut noisy);
            started.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    milliseconds.sort_by(f64::total_cmp);
    milliseconds[milliseconds.len() / 2]
}

/// Latency and bandwidth between the processes of the launcher, from a message of nothing and one
/// of 8 MiB.
fn between_processes(ranks: &dyn Collective) -> anyhow::Result<Network> {
    const TURNS: u32 = 50;
    const LARGE: usize = 1 << 20;
    let milliseconds = |n: usize| -> anyhow::Result<f64> {
        let mut values = vec![1_i64; n];
        ranks.sum(&mut values)?;
        let started = Instant::now();
        for _ in 0..TURNS {
            values.fill(1);
            ranks.sum(&mut values)?;
        }
        Ok(started.elapsed().as_secs_f64() * 1e3 / f64::from(TURNS))
    };
    let (none, large) = (milliseconds(1)?, milliseconds(LARGE)?);
    let n = ranks.size() as f64;
    let rounds = 2.0 * n.log2().ceil();
    let bytes = 2.0 * (8 * LARGE) as f64 * (n - 1.0) / n;
    Ok(Network {
        name: "this machine, measured",
        latency: none / rounds,
        bandwidth: bytes / (large - none).max(f64::MIN_POSITIVE),
    })
}

impl Scaling {
    /// What follows from it, as tables.
    pub fn tables(&self) -> String {
        let Self { networks, costs } = self;
        // Writing to a `String` cannot fail.
        let mut text = String::new();
        let _ = writeln!(
            text,
            "| network | parameters | ms a step in full | ms of noise | µs a record | bytes one of two gives a step, and a record |\n\
             |---|---|---|---|---|---|"
        );
        for (model, _, cost) in costs {
            let Cost { in_full, noise, record, n_parameters, divides } = cost;
            let _ = writeln!(
                text,
                "| {} | {n_parameters} | {in_full:.2} | {noise:.2} | {:.1} | {}, 24 |",
                model.name(),
                1e3 * record,
                if *divides { 6.0 } else { 8.0 } * n_parameters
            );
        }
        for network in networks {
            let Network { name, latency, bandwidth } = network;
            let _ = writeln!(text, "\n{name}: {:.1} µs a message, {:.2} GB/s", 1e3 * latency, bandwidth * 1e-6);
            let head = PROCESSES.map(|n| format!(" {n} |")).concat();
            let _ = writeln!(
                text,
                "\n| ms a step (% of the ideal), processes: |{head}\n|---|{}",
                "---|".repeat(PROCESSES.len())
            );
            for (model, shared, cost) in costs {
                let strong = PROCESSES.map(|n| {
                    let step = cost.step(network, n, *shared);
                    format!(" {step:.1} ({:.0}) |", 100.0 * cost.strong(network, n, *shared))
                });
                let _ = writeln!(text, "| {}, {shared} records shared |{}", model.name(), strong.concat());
                let weak = PROCESSES.map(|n| {
                    let step = cost.step(network, n, OF_A_PROCESS * n);
                    format!(" {step:.1} ({:.0}) |", 100.0 * cost.weak(network, n, OF_A_PROCESS))
                });
                let _ = writeln!(text, "| {}, {OF_A_PROCESS} records each |{}", model.name(), weak.concat());
            }
            let hidden = PROCESSES.map(|n| {
                let shares = costs.iter().map(|(_, shared, cost)| cost.hidden(network, n, *shared));
                format!(" {:.1} |", 100.0 * shares.fold(0.0, f64::max))
            });
            let _ = writeln!(text, "| longest exchange of a divided sum, % of a step |{}", hidden.concat());
        }
        let (network, operations, of_parameter) = &CARDS;
        let _ = writeln!(text, "\n{}: assumed, no card has run it", network.name);
        let _ = writeln!(text, "\n| ms a step (% of the ideal), cards: | 1 | 2 | 4 | 8 |\n|---|---|---|---|---|");
        for (model, shared, cost) in costs {
            let card = Cost {
                in_full: of_parameter * cost.n_parameters,
                // On a card noise is bound by memory, too, and the sum is NCCL's.
                noise: 0.0,
                record: model.operations() / operations,
                n_parameters: cost.n_parameters,
                divides: false,
            };
            let cells = [1, 2, 4, 8].map(|n| {
                let step = card.step(network, n, *shared);
                format!(" {step:.2} ({:.0}) |", 100.0 * card.strong(network, n, *shared))
            });
            let _ = writeln!(text, "| {}, {shared} records shared |{}", model.name(), cells.concat());
        }
        text
    }

    /// Shares of the ideal over processes: a panel for each network and way to scale.
    ///
    /// # Errors
    /// If they cannot be drawn.
    pub fn curves(&self) -> anyhow::Result<String> {
        let Self { networks, costs } = self;
        let panel = |network: &Network, title: &str, share: &dyn Fn(&Cost, u32, u32) -> f64| {
            let line = |(model, shared, cost): &(StepModel, u32, Cost)| Series {
                name: model.name().to_owned(),
                points: PROCESSES
                    .map(|n| {
                        let mean = 100.0 * share(cost, n, *shared);
                        Point { x: f64::from(n), mean, low: mean, high: mean }
                    })
                    .into(),
            };
            Panel::Lines(LinePanel {
                title: format!("{}, {title}", network.name),
                x_label: "processes".to_owned(),
                y_label: "% of the ideal".to_owned(),
                series: costs.iter().map(line).collect(),
                y_range: Some((0.0, 105.0)),
                log2_x: true,
            })
        };
        let panels = networks.iter().flat_map(|network| {
            let strong = panel(network, "one batch shared", &|cost, n, shared| cost.strong(network, n, shared));
            let each = format!("{OF_A_PROCESS} records each");
            [strong, panel(network, &each, &|cost, n, _| cost.weak(network, n, OF_A_PROCESS))]
        });
        let plot = Plot {
            title: "A private step on many processes: cost model".into(),
            panels: panels.collect(),
            n_columns: 2,
        };
        plot.svg().context("drawing the curves")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: Network = Network { name: "test", latency: 0.5, bandwidth: 1e3 };

    /// 100 records take 3 ms and 300 take 7: 1 ms in full, 0.02 ms a record.
    #[test]
    fn a_cost_goes_through_its_measurements() {
        let cost = Cost::through([(100, 3.0), (300, 7.0)], 0.25, 500);
        assert!((cost.in_full - 0.75).abs() < 1e-12 && (cost.record - 0.02).abs() < 1e-12);
        assert!((cost.step(&NETWORK, 1, 300) - 7.0).abs() < 1e-12);
    }

    /// Of 512 records each of two has 256: 1 + 5.12 ms. The sum is of 8 · 500 + 24 · 512 bytes:
    /// 2 · (0.5 + 16,288 / 2 / 1,000) = 17.288 ms.
    #[test]
    fn a_step_by_hand() {
        let cost = Cost { in_full: 0.75, noise: 0.25, record: 0.02, n_parameters: 500.0, divides: false };
        assert!((cost.step(&NETWORK, 2, 512) - 23.408).abs() < 1e-9);
        // Four pieces on three: one has two of them.
        let free = Network { name: "free", latency: 0.0, bandwidth: f64::INFINITY };
        assert!((cost.step(&free, 3, 512) - 6.12).abs() < 1e-9);
        assert!((cost.weak(&free, 64, 256) - 1.0).abs() < 1e-12);
        assert!(cost.strong(&free, 4, 512) < 1.0);
        // Divided: 0.75 + 0.125 + 5.12 ms; 2 · 0.5 + 8 · 500 / 2 / 1,000 = 3 ms for the sum, and
        // 3 · 0.5 + (24 · 512 + 4 · 500) / 2 / 1,000 = 8.644 ms for records and gradient.
        let divided = Cost { divides: true, ..cost };
        let step = 0.75 + 0.125 + 5.12 + 3.0 + 8.644;
        assert!((divided.step(&NETWORK, 2, 512) - step).abs() < 1e-9);
        assert!((divided.hidden(&NETWORK, 2, 512) - 3.0 / step).abs() < 1e-12);
        assert!(cost.hidden(&NETWORK, 2, 512) == 0.0);
    }
}
