from fairdp import accounting as accounting
from fairdp import metrics as metrics
from fairdp._fairdp import AccountingError as AccountingError
from fairdp._fairdp import FairDPError as FairDPError
from fairdp._fairdp import MetricError as MetricError
from fairdp._fairdp import __version__ as __version__
from fairdp._leaks import PrivacyLeakWarning as PrivacyLeakWarning
from fairdp.estimator import FairDPClassifier as FairDPClassifier
