import { Effect, Stream } from "effect"
import type { Answer } from "./Http.ts"
import { at, fieldsAt, listAt, textAt } from "./Json.ts"
import { builtInKinds } from "./Kind.ts"
import { KubeStatus } from "./KubeStatus.ts"
import type { ObjectStore, Stored } from "./ObjectStore.ts"

const passedOn = ["follow", "limitBytes", "previous", "sinceSeconds", "sinceTime", "tailLines", "timestamps"]

const nodes = builtInKinds.find(({ plural }) => plural === "nodes")

/** The container whose log a request names; without a name, the only one of the pod. */
const containerOf = (pod: Stored, query: URLSearchParams): Effect.Effect<string, KubeStatus> => {
  const names = ["containers", "initContainers"].flatMap((list) => listAt(pod.object, "spec", list).map((one) => textAt(one, "name")))
  const own = listAt(pod.object, "spec", "containers").map((one) => textAt(one, "name"))
  const container = query.get("container") ?? (own.length === 1 ? own[0] : undefined)
  if (container === undefined)
    return Effect.fail(KubeStatus.badRequest(`a container name must be specified for pod ${pod.name}, choose one of: [${own.join(" ")}]`))
  return names.includes(container) ? Effect.succeed(container) : Effect.fail(KubeStatus.badRequest(`container ${container} is not valid for pod ${pod.name}`))
}

/** The address of the agent of a pod's node. */
const agentOf = (store: ObjectStore["Service"], pod: Stored): Effect.Effect<string, KubeStatus> => {
  const nodeName = textAt(pod.object, "spec", "nodeName")
  if (nodeName === "") return Effect.fail(KubeStatus.badRequest(`pod ${pod.name} does not have a host assigned`))
  const node = nodes === undefined ? undefined : store.get(nodes.stored, "", nodeName)
  if (node === undefined) return Effect.fail(new KubeStatus({ code: 500, reason: "InternalError", message: `Internal error occurred: no node "${nodeName}"` }))
  const internal = listAt(node.object, "status", "addresses").find((one) => textAt(one, "type") === "InternalIP")
  const port = at(fieldsAt(node.object, "status", "daemonEndpoints", "kubeletEndpoint"), "Port")
  return Effect.succeed(`http://${textAt(internal, "address")}:${port}`)
}

/** The log of a container, read from the agent of the pod's node. */
export const podLog = Effect.fnUntraced(function* (store: ObjectStore["Service"], pod: Stored, query: URLSearchParams): Effect.fn.Return<Answer, KubeStatus> {
  const container = yield* containerOf(pod, query)
  const url = new URL(`${yield* agentOf(store, pod)}/containerLogs/${pod.namespace}/${pod.name}/${container}`)
  for (const name of passedOn) {
    const value = query.get(name)
    if (value !== null) url.searchParams.set(name, value)
  }
  const unreachable = (cause: unknown) =>
    new KubeStatus({ code: 500, reason: "InternalError", message: `Get "${url.href}": the node's agent does not respond: ${String(cause)}` })
  // The body is read at the speed of the client. A disconnect interrupts the stream and cancels the read.
  const answer = yield* Effect.tryPromise({ try: () => fetch(url), catch: unreachable })
  if (!answer.ok) {
    const message = yield* Effect.tryPromise({ try: () => answer.text(), catch: unreachable })
    return yield* answer.status === 404
      ? KubeStatus.notFound({ group: "", plural: "pods", kind: "Pod" }, pod.name)
      : new KubeStatus({ code: answer.status, reason: answer.status === 400 ? "BadRequest" : "InternalError", message: message.trim() })
  }
  const { body } = answer
  const stream = body === null ? Stream.empty : Stream.fromReadableStream({ evaluate: () => body, onError: unreachable }).pipe(Stream.catch(() => Stream.empty))
  return { code: 200, mediaType: "text/plain", stream }
})
