/// Which version of Fleetbus this is, as its programs say it.
package let fleetbusVersion = "0.1.0"
