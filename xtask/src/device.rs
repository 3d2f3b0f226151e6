//! Where the arithmetic of a training command is done.

use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use dp_train::ranks::local_rank;
use dp_train::{Device, Execution, NoiseSource};

/// Options of every command that trains.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct DeviceArgs {
    /// Where the arithmetic is done: cpu, cuda or cuda:N for the CUDA device with that number,
    /// cuda-tf32 or cuda-tf32:N for its passes in TF32; without a number the first, or one for each process of a launcher. CUDA needs a build with the feature `cuda`
    /// (docs/cuda.md).
    #[arg(long, default_value = "cpu", value_name = "DEVICE")]
    device: DeviceName,
    /// Where noise is made in a run on a CUDA device. Privacy is the same.
    #[arg(long, value_enum, default_value_t = NoisePlace::Device)]
    noise: NoisePlace,
}

/// Where noise is made.
#[derive(Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum NoisePlace {
    /// On the device.
    #[default]
    Device,
    /// On the host, by the code that makes it for the CPU.
    Host,
}

/// A device on the command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DeviceName {
    #[default]
    Cpu,
    Cuda(usize),
    /// With passes in TF32.
    CudaInTf32(usize),
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let (kind, number) = match name.split_once(':') {
            Some((kind, number)) => (kind, number.parse()),
            // Of several processes on a machine, each has a card of its own.
            None => (name, Ok(local_rank())),
        };
        match (kind, number) {
            ("cpu", _) if name == kind => Ok(Self::Cpu),
            ("cuda", Ok(number)) => Ok(Self::Cuda(number)),
            ("cuda-tf32", Ok(number)) => Ok(Self::CudaInTf32(number)),
            _ => Err("expected cpu, cuda, cuda:N, cuda-tf32 or cuda-tf32:N".to_owned()),
        }
    }
}

impl DeviceName {
    /// The device.
    ///
    /// # Errors
    /// If this program has no CUDA, or no such device answers.
    pub(crate) fn open(self) -> anyhow::Result<Device> {
        if self == Self::Cpu {
            return Ok(Device::Cpu);
        }
        ensure!(
            cfg!(feature = "cuda"),
            "--device {self}: this program was built without the feature `cuda`: \
             cargo run --release -p xtask --features cuda -- …"
        );
        let device = match self {
            Self::Cpu => Ok(Device::Cpu),
            Self::Cuda(number) => dp_train::cuda_device(number),
            Self::CudaInTf32(number) => dp_train::cuda_device_in_tf32(number),
        };
        device.with_context(|| format!("--device {self}: it cannot be used"))
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(number) => write!(f, "cuda:{number}"),
            Self::CudaInTf32(number) => write!(f, "cuda-tf32:{number}"),
        }
    }
}

impl DeviceArgs {
    /// Threads where none were asked for: all cores, or 1 on a CUDA device.
    pub(crate) fn default_threads(&self) -> NonZeroUsize {
        match self.device {
            DeviceName::Cpu => std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            DeviceName::Cuda(_) | DeviceName::CudaInTf32(_) => NonZeroUsize::MIN,
        }
    }

    /// These options as the command line has them.
    pub(crate) fn arguments(&self) -> [String; 4] {
        let noise = match self.noise {
            NoisePlace::Device => "device",
            NoisePlace::Host => "host",
        };
        ["--device".into(), self.device.to_string(), "--noise".into(), noise.into()]
    }

    /// The execution on this device, on one thread.
    ///
    /// # Errors
    /// If this program has no CUDA, or no such device answers.
    pub(crate) fn execution(&self) -> anyhow::Result<Execution> {
        let device = self.device.open()?;
        let noise = match self.noise {
            NoisePlace::Device => NoiseSource::Device,
            NoisePlace::Host => NoiseSource::Host,
        };
        Ok(Execution { device, noise, ..Execution::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_have_names() {
        let parsed = |name: &str| name.parse::<DeviceName>();
        assert_eq!(parsed("cpu"), Ok(DeviceName::Cpu));
        assert_eq!(parsed("cuda"), Ok(DeviceName::Cuda(0)));
        assert_eq!(parsed("cuda:3"), Ok(DeviceName::Cuda(3)));
        assert_eq!(DeviceName::Cuda(3).to_string(), "cuda:3");
        assert_eq!(parsed("cuda-tf32"), Ok(DeviceName::CudaInTf32(0)));
        assert_eq!(DeviceName::CudaInTf32(3).to_string().parse(), Ok(DeviceName::CudaInTf32(3)));
        for wrong in ["gpu", "cuda:", "cuda:x", "cuda:-1", "cpu:0", "cuda-tf32:", ""] {
            assert_eq!(parsed(wrong), Err("expected cpu, cuda, cuda:N, cuda-tf32 or cuda-tf32:N".to_owned()));
        }
    }

    #[test]
    fn options_are_read_as_they_are_written() {
        #[derive(clap::Parser)]
        struct Program {
            #[command(flatten)]
            device: DeviceArgs,
        }
        for noise in ["device", "host"] {
            let arguments = ["--device", "cuda:2", "--noise", noise];
            let program = <Program as clap::Parser>::parse_from(["program"].into_iter().chain(arguments));
            assert_eq!(program.device.arguments(), arguments);
        }
    }

    #[cfg(not(feature = "cuda"))]
    #[test]
    fn a_build_without_cuda_says_how_to_get_one() {
        let args = DeviceArgs { device: DeviceName::Cuda(1), noise: NoisePlace::Device };
        let error = args.execution().unwrap_err().to_string();
        insta::assert_snapshot!(error, @"--device cuda:1: this program was built without the feature `cuda`: cargo run --release -p xtask --features cuda -- …");
    }
}
