import type { MetricFamily } from "@seatrial/domain"

/** A label's value as Prometheus' text format has it. */
export const quoted = (text: string) => text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")

/** A family's lines, below what is said of it. */
export const formatFamily = (
  { family: { meaning, name, type } }: { readonly family: MetricFamily },
  openMetrics: boolean,
  of: (name: string) => ReadonlyArray<string>
): ReadonlyArray<string> => {
  const shown = openMetrics && type === "counter" ? name.replace(/_total$/u, "") : name
  return [`# HELP ${shown} ${meaning}`, `# TYPE ${shown} ${type}`, ...of(name)]
}
