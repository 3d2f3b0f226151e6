from fairdp import accounting as accounting
from fairdp import metrics as metrics
from fairdp._fairdp import AccountingError as AccountingError
from fairdp._fairdp import MetricError as MetricError
from fairdp._fairdp import __version__ as __version__
