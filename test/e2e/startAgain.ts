import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { type KubeClient, Pod } from "@seatrial/kube"
import { Effect, Option } from "effect"
import { eventually } from "./eventually.ts"

const namespace = "seatrial"

const isReady = (pod: Option.Option<Pod>) =>
  Option.isSome(pod) && pod.value.status?.conditions?.some(({ status, type }) => type === "Ready" && status === "True") === true

/** Deletes the pod of an engine and waits until a new one with the same name is ready. */
export const startAgain = Effect.fnUntraced(function* (kube: KubeClient["Service"], name: string) {
  const before = Option.getOrThrow(yield* kube.get(Pod, name, namespace)).metadata.uid
  yield* kube.remove(Pod, name, namespace, { gracePeriodSeconds: 1 })
  yield* eventually("the new pod is ready", kube.get(Pod, name, namespace), (pod) => isReady(pod) && Option.getOrThrow(pod).metadata.uid !== before)
})

/** The folders with the complete weights of a commit in a store or in the copies of a node. */
export const commitsIn = async (folder: string) =>
  (await readdir(folder, { recursive: true })).filter((name) => /\/[0-9a-f]{40}\/\.seatrial-manifest\.json$/.test(name)).map((name) => join(folder, name, ".."))
