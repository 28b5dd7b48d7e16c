/** Prometheus' text format as OpenMetrics wants it: a counter's family is named without `_total`. The end mark is not there yet. */
export const toOpenMetrics = (text: string): string =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.replace(/^(# (?:HELP|TYPE) \S+)_total( |$)/u, "$1$2").replace(/^(# TYPE \S+ )untyped$/u, "$1unknown"))
    .join("\n")
    .concat("\n")
