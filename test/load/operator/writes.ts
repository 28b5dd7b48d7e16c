import { readdir, readFile } from "node:fs/promises"
import { Effect } from "effect"
import type { Lab } from "../Lab.ts"
import type { startKwokCluster } from "./KwokCluster.ts"

export type KwokCluster = Effect.Success<ReturnType<typeof startKwokCluster>>
type Counts = ReadonlyMap<string, number>

/** Values of a page in the Prometheus text format. */
export const samplesOf = (page: string): ReadonlyArray<{ readonly name: string; readonly labels: string; readonly value: number }> =>
  [...page.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = "", labels = "", value]) => ({ name, labels, value: Number(value) }))

export const sum = (values: Iterable<number>): number => [...values].reduce((total, value) => total + value, 0)

/** The increases since `before`, without zeros. */
export const since = (now: Counts, before: Counts): Counts =>
  new Map([...now].map(([key, value]) => [key, value - (before.get(key) ?? 0)] as const).filter(([, value]) => value > 0))

/** `3 leases, 1 pods`, or `none`. */
export const words = (counts: Counts): string => (counts.size === 0 ? "none" : [...counts].map(([name, count]) => `${count} ${name}`).join(", "))

const isWrite = /verb="(POST|PUT|PATCH|APPLY|DELETE|DELETECOLLECTION)"/
const resourceOf = (labels: string) => `${/resource="([^"]*)"/.exec(labels)?.[1] ?? ""}${labels.includes('subresource="status"') ? "/status" : ""}`

/** Writes that the API server has answered since its start, by resource. */
export const apiWrites = (cluster: KwokCluster) =>
  Effect.map(cluster.command("kubectl", ["get", "--raw", "/metrics"]), (page): Counts => {
    const taken = new Map<string, number>()
    for (const { labels, name, value } of samplesOf(page)) {
      if (name !== "apiserver_request_total" || !isWrite.test(labels)) continue
      const resource = resourceOf(labels)
      taken.set(resource, (taken.get(resource) ?? 0) + value)
    }
    return taken
  })

/** Rows written to the database so far, by table. Postgres reports them with a delay of some seconds. */
export const rowWrites = ({ sql }: Lab) =>
  Effect.map(
    sql<{ readonly relname: string; readonly written: number }>`SELECT relname, (n_tup_ins + n_tup_upd + n_tup_del)::int AS written FROM pg_stat_user_tables`,
    (rows): Counts => new Map(rows.map(({ relname, written }) => [relname, written]))
  )

const ticksOf = async (pid: string) => {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")
  // The third field follows the closing bracket of the command. Fields 14 to 17 are the ticks of 10 ms of the process and its ended children.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const micros = [11, 12, 13, 14].reduce((total, field) => total + Number(fields[field] ?? 0) * 10_000, 0)
  return { parent: Number(fields[1]), name: text.slice(text.indexOf("(") + 1, text.lastIndexOf(")")), micros }
}

/** Processor time of this process and its descendants in microseconds, by name. */
export const everybodysMicros: Effect.Effect<Counts> = Effect.promise(async () => {
  const all = new Map<number, Awaited<ReturnType<typeof ticksOf>>>()
  for (const entry of await readdir("/proc")) if (/^\d+$/.test(entry)) all.set(Number(entry), await ticksOf(entry))
  const isOurs = (pid: number): boolean => pid === process.pid || (pid > 1 && isOurs(all.get(pid)?.parent ?? 0))
  const used = new Map<string, number>()
  for (const [pid, { micros, name }] of all) {
    const key = pid === process.pid ? "benchmark" : name
    if (isOurs(pid)) used.set(key, (used.get(key) ?? 0) + micros)
  }
  return used
})
