// The schemas of ScaledObject, PodMonitor and PrometheusRule are files of these modules.
module eventproc/crds

go 1.24.0

require (
	github.com/kedacore/keda/v2 v2.17.2
	github.com/prometheus-operator/prometheus-operator v0.83.0
)
