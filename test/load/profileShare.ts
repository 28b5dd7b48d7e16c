import { readdir, readFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect, Schema } from "effect"

const Profile = Schema.fromJsonString(
  Schema.Struct({
    nodes: Schema.Array(
      Schema.Struct({
        id: Schema.Int,
        callFrame: Schema.Struct({ functionName: Schema.String, url: Schema.String }),
        children: Schema.optionalKey(Schema.Array(Schema.Int))
      })
    ),
    samples: Schema.Array(Schema.Int),
    timeDeltas: Schema.Array(Schema.Finite)
  })
)
type Profile = typeof Profile.Type

/** The share of the time of a CPU profile that passed in functions of these files and in what they called. Idle time does not count. */
export const shareOf = ({ nodes, samples, timeDeltas }: Profile, isCounted: (url: string) => boolean): number => {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const counted = new Set<number>()
  const count = (id: number): void => {
    counted.add(id)
    for (const child of byId.get(id)?.children ?? []) count(child)
  }
  for (const { callFrame, id } of nodes) if (!counted.has(id) && isCounted(callFrame.url)) count(id)
  let [busy, own] = [0, 0]
  samples.forEach((id, index) => {
    const micros = timeDeltas[index] ?? 0
    if (byId.get(id)?.callFrame.functionName === "(idle)") return
    busy += micros
    if (counted.has(id)) own += micros
  })
  return own / busy
}

/** Reads the only CPU profile of a folder. */
export const readProfile = (folder: string): Effect.Effect<Profile> =>
  Effect.promise(async () => {
    const [name = ""] = (await readdir(folder)).filter((file) => file.endsWith(".cpuprofile"))
    return Schema.decodeUnknownSync(Profile)(await readFile(join(folder, name), "utf8"))
  })
