import { connect, createServer, type Socket } from "node:net"
import { type KubeClient, keyOf, Pod } from "@seatrial/kube"
import { Effect, Stream } from "effect"

const isReady = ({ metadata, status }: Pod) =>
  metadata.deletionTimestamp === undefined && status?.conditions?.some(({ status: is, type }) => type === "Ready" && is === "True") === true

/**
 * What a node's own proxy does for a Service, which this cluster without a network does not have: each connection to an address of ours goes to one of the pods that are
 * ready, in turn. Connections that are open stay with their pod while it ends. Gives `http://127.0.0.1:port`; ends with the scope.
 */
export const serviceProxy = Effect.fnUntraced(function* (
  kube: KubeClient["Service"],
  service: { readonly namespace: string; readonly component: string; readonly port: number }
) {
  const ready = new Map<string, string>()
  let turn = 0
  const see = (pod: Pod) => {
    const address = pod.status?.podIP
    if (address !== undefined && isReady(pod)) ready.set(keyOf(pod), address)
    else ready.delete(keyOf(pod))
  }
  const selection = { namespace: service.namespace, labelSelector: `app.kubernetes.io/name=seatrial,app.kubernetes.io/component=${service.component}` }
  yield* kube.watch(Pod, selection).pipe(
    Stream.runForEach((event) =>
      Effect.sync(() => {
        switch (event._tag) {
          case "Synced":
            ready.clear()
            return event.items.forEach(see)
          case "Changed":
            return see(event.object)
          case "Removed":
            return void ready.delete(keyOf(event.object))
          case "RemovedUnreadable":
            return void ready.delete(event.key)
        }
      })
    ),
    Effect.forkScoped
  )
  const open = new Set<Socket>()
  const server = createServer((client) => {
    const addresses = [...ready.values()]
    const address = addresses[turn++ % Math.max(1, addresses.length)]
    if (address === undefined) return client.destroy()
    const pod = connect({ host: address, port: service.port })
    for (const [from, to] of [
      [client, pod],
      [pod, client]
    ] as const) {
      open.add(from)
      from.pipe(to)
      from.on("error", () => to.destroy())
      from.once("close", () => {
        open.delete(from)
        to.destroy()
      })
    }
  })
  const port = yield* Effect.acquireRelease(
    Effect.callback<number>((resume) => {
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        resume(Effect.succeed(address !== null && typeof address === "object" ? address.port : 0))
      })
    }),
    () =>
      Effect.callback<void>((resume) => {
        for (const socket of open) socket.destroy()
        server.close(() => resume(Effect.void))
      })
  )
  return { address: `http://127.0.0.1:${port}`, pods: (): ReadonlyArray<string> => [...ready.keys()] }
})
