import { counter, gauge, histogram } from "@seatrial/domain"

/** Metrics of the store, in every program that uses it. */
export const storeMetrics = {
  keyLookUps: counter("seatrial_store_key_lookups_total", {
    labels: ["result"],
    unit: "lookups",
    meaning: "API key lookups: `hit` if the key was cached, `miss` if it was not, `refused` if it may not exist and its address sent too many nonexistent keys"
  }),
  commitSeconds: histogram("seatrial_store_commit_seconds", [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5], {
    labels: [],
    unit: "seconds",
    meaning: "Time from the arrival of the first row of a transaction to its commit: the lag of request records"
  }),
  spoolBytes: gauge("seatrial_store_spool_bytes", {
    labels: [],
    unit: "bytes",
    meaning: "Size of the request records that wait on the local disk for the database"
  }),
  spooledRows: counter("seatrial_store_spooled_rows_total", {
    labels: [],
    unit: "rows",
    meaning: "Request records that were spooled because the database did not accept them in time"
  }),
  spoolRefusedRows: counter("seatrial_store_spool_refused_rows_total", {
    labels: [],
    unit: "rows",
    meaning: "Spooled rows that the database rejected permanently; they are in records.spool.refused and need an operator's attention"
  }),
  spendAlerts: counter("seatrial_store_spend_alerts_total", {
    labels: ["of", "allowance", "percent"],
    unit: "alerts",
    meaning:
      "Allowances (balance, daily limit or monthly limit, of an organization or a key) that reached 50, 80 or 100 percent; each percentage is counted once, by one program"
  }),
  phaseSeconds: histogram("seatrial_store_phase_seconds", [0.1, 0.5, 1, 5, 15, 60, 300, 900, 3_600, 14_400], {
    labels: ["phase", "outcome"],
    unit: "seconds",
    meaning: "Duration of a phase of a deployment, by outcome: passed, requeued, failed or cancelled; counted by the program that ends the phase"
  }),
  probeSeconds: histogram("seatrial_store_probe_seconds", [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15], {
    labels: ["outcome"],
    unit: "seconds",
    meaning: "Duration of the schema check, which runs every ten seconds, including the wait for a pool connection; the outcome is done or failed"
  })
}
