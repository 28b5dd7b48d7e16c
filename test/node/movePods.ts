import { Pod } from "@seatrial/kube"
import { Effect } from "effect"
import { namespace } from "./clusterObjects.ts"
import type { NodeClusterShape } from "./NodeCluster.ts"
import type { RealNode } from "./RealNode.ts"

/** The words that empty a node, as the documents have them. */
export const drainWords = (node: string): ReadonlyArray<string> => ["drain", node, "--ignore-daemonsets", "--delete-emptydir-data"]

/** The engine of the model that serves, the node that has it, and the other node. Dies if there is not one engine. */
export const placeOfEngine = Effect.fnUntraced(function* ({ kube, nodes }: NodeClusterShape) {
  const pods = yield* kube.list(Pod, { namespace, labelSelector: "seatrial.dev/role=engine" })
  const [engine, more] = pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const node = nodes.find(({ name }) => name === engine?.spec?.nodeName)
  const other = nodes.find(({ name }) => name !== engine?.spec?.nodeName)
  if (engine === undefined || more !== undefined || node === undefined || other === undefined)
    return yield* Effect.die(new Error(`${pods.length} engines instead of one on one of two nodes`))
  return { engine, node, other }
})

/** Moves what has one pod only, Postgres and DNS, off a node. Their gap belongs to other tests. */
export const moveSingles = Effect.fnUntraced(function* ({ kubectl }: NodeClusterShape, { name }: RealNode) {
  for (const selector of ["app.kubernetes.io/component=postgres", "k8s-app=kube-dns"]) {
    yield* kubectl([...drainWords(name), `--pod-selector=${selector}`, "--timeout=120s"])
  }
  yield* kubectl(["uncordon", name])
  yield* kubectl(["rollout", "status", "statefulset/seatrial-postgres", "--timeout=180s"])
  yield* kubectl(["--namespace=kube-system", "rollout", "status", "deployment/coredns", "--timeout=180s"])
})
