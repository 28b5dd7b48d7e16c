import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { sampleHubToken } from "@seatrial/local"
import { Effect, Schema, type Scope } from "effect"
import { parse, stringify } from "yaml"
import { simulatedProduct } from "../../cluster/simulatedHostClass.ts"
import { eventually } from "../../e2e/eventually.ts"
import { namespaceObject } from "../clusterObjects.ts"
import type { NodeClusterShape } from "../NodeCluster.ts"
import { postgresImage } from "../nodeImages.ts"
import { bridge, desk, root, state } from "../places.ts"
import { environment, runNow, runTool, type ToolFailed } from "../runTool.ts"
import { startPart } from "../startPart.ts"
import { asTheStepSays, blocksOf, fillIn, stepOf } from "./page.ts"

const clone = join(state, "clone")
export const valuesFile = join(clone, "my-values.yaml")

/** The image of step 1, and of the host class of step 4. */
export const pageImage = "registry.example/seatrial:0.1.0"

/** A folder like a clone, in which commands leave their files. */
const makeClone = (): void => {
  mkdirSync(clone, { recursive: true })
  for (const name of readdirSync(root)) if (name !== ".git") symlinkSync(join(root, name), join(clone, name))
}

/** Ports of this machine may be taken. The page's ports are free in a network namespace of its own. */
const createDesk = (): void => {
  const { address, link, namespace } = desk
  const within = (...words: ReadonlyArray<string>) => runNow("nsenter", `--net=/run/netns/${namespace}`, ...words)
  runNow("ip", "netns", "add", namespace)
  runNow("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", namespace)
  runNow("ip", "link", "set", link, "master", bridge, "up")
  within("ip", "addr", "add", `${address}/24`, "dev", "eth0")
  within("ip", "link", "set", "eth0", "up")
  within("ip", "link", "set", "lo", "up")
}

const small = { requests: { cpu: "20m", memory: "64Mi" } }

/** What a reader adds to the values: small nodes without a registry, and an evaluation without an own Postgres. */
const ownValues = (hub: string) => ({
  hub: { endpoint: hub },
  postgres: { embedded: { enabled: true, image: postgresImage, resources: { requests: { cpu: "50m", memory: "128Mi" } } } },
  server: { resources: small },
  gateway: { resources: { ...small, limits: { memory: "2Gi" } } },
  operator: { resources: small }
})

/** What a reader changes in the sample of a host class. */
const ownClass = {
  gpuPool: simulatedProduct,
  gpuCount: 1,
  gpuMemoryBytes: 2 ** 30,
  nodeSelector: { "nvidia.com/gpu.product": simulatedProduct },
  pricePerGpuHour: "100000",
  runtimes: [{ runtime: "reference", image: pageImage }],
  benchmarkSeconds: 1,
  simulated: true
}

const Mapping = Schema.Record(Schema.String, Schema.Unknown)
const parseMapping = (text: string) => Schema.decodeUnknownSync(Mapping)(parse(text))

const writeValues = (step: string, hub: string): void =>
  writeFileSync(valuesFile, stringify({ ...parseMapping(blocksOf(step, "yaml").join("")), ...asTheStepSays(step, ownValues(hub)) }))

const writeHostClass = (step: string): void => {
  asTheStepSays(step, { ...ownClass, metadata: { name: "sim-small" } })
  const sample = parseMapping(readFileSync(join(root, "k8s/samples/hostclass-h100.yaml"), "utf8"))
  const spec = { ...Schema.decodeUnknownSync(Mapping)(sample.spec), ...ownClass }
  writeFileSync(join(clone, "my-hostclass.yaml"), stringify({ ...sample, metadata: { name: "sim-small" }, spec }))
}

/** The first match in what a command printed. */
const find = (pattern: RegExp, printed: string): string => {
  const found = pattern.exec(printed)?.[0]
  if (found === undefined) throw new Error(`There is no ${pattern} in: ${printed}`)
  return found
}

/** Runs the commands of the page in order, in a shell as a reader has it. Returns what they printed, by step, and the key of step 5. */
export const runQuickStart = Effect.fnUntraced(function* (
  cluster: NodeClusterShape
): Effect.fn.Return<{ readonly key: string; readonly printed: ReadonlyMap<number, string> }, ToolFailed, Scope.Scope> {
  makeClone()
  createDesk()
  const words: Record<string, string> = { "Qwen/Qwen3-8B": "seatrial/tiny-chat", "hf_...": sampleHubToken }
  const env = {
    ...cluster.pageEnvironment,
    HOME: clone,
    XDG_CONFIG_HOME: join(clone, ".config"),
    PATH: `${import.meta.dirname}:${environment().PATH ?? ""}`
  }
  const printed = new Map<number, string>()
  const shell = (block: string) =>
    ["nsenter", `--net=/run/netns/${desk.namespace}`, "bash", "-euo", "pipefail", "-c", `cd '${clone}'; exec 2>&1\n${fillIn(block, words)}`] as const
  const run = Effect.fnUntraced(function* (number: number, blocks = blocksOf(stepOf(number), "sh")) {
    for (const block of blocks) {
      const [program, ...args] = shell(block)
      printed.set(number, `${printed.get(number) ?? ""}${yield* runTool(program, args, { env })}`)
    }
    return printed.get(number) ?? ""
  })

  yield* run(1)
  yield* run(2)
  // The suite's own wish: every pod of the release must comply with the strictest standard.
  yield* cluster.apply(namespaceObject)
  writeValues(stepOf(3), cluster.hub)
  yield* run(3)
  writeHostClass(stepOf(4))
  yield* run(4)
  // Engines that stop soon, for the other tests.
  yield* cluster.kubectl(["patch", "hostclass", "sim-small", "--type=merge", '--patch={"spec":{"drainSeconds":5}}'])
  yield* eventually("the class is accepted", cluster.kubectl(["get", "hostclasses"]), (table) => /^sim-small .* 8 +8 +0 +True /mu.test(table))
  words["seatrial_..."] = find(/seatrial_\w{20,}/u, yield* run(5))
  const [forward = "", login = ""] = blocksOf(stepOf(6), "sh")
  const forwarding = yield* startPart("port-forward", ["env", ...Object.entries(env).map((pair) => pair.join("=")), ...shell(forward)])
  yield* eventually("both Services are forwarded", Effect.sync(forwarding.log), (log) => log.includes("127.0.0.1:8080 ->") && log.includes("127.0.0.1:8081 ->"))
  yield* run(6, [login])
  yield* run(7)
  const [ask = "", list = "", receipt = ""] = blocksOf(stepOf(8), "sh")
  yield* run(8, [ask])
  words["req_..."] = find(/req_\w+/u, yield* run(8, [list]))
  yield* run(8, [receipt])
  return { key: words["seatrial_..."], printed }
})
