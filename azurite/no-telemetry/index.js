// Azurite only loads this module; it uses it when telemetry is on, and we start it with --disableTelemetry.
module.exports = {};
