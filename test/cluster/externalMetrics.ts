import { createServer } from "node:https"
import { Effect } from "effect"
import type { ControlPlane } from "./ControlPlane.ts"

const version = "external.metrics.k8s.io/v1beta1"

/**
 * Registers an API of external metrics, like prometheus-adapter. It has one metric, `read`, and is reached through the API
 * server's aggregation layer. It stands in for Prometheus and its adapter, which are not part of this cluster.
 */
export const startExternalMetrics = Effect.fnUntraced(function* (
  { command, tls }: ControlPlane,
  namespace: string,
  metric: string,
  read: Effect.Effect<number>
) {
  const services = yield* Effect.context<never>()
  const value = () => Effect.runPromiseWith(services)(read)
  const list = async () => ({
    kind: "ExternalMetricValueList",
    apiVersion: version,
    metadata: {},
    items: [{ metricName: metric, metricLabels: {}, timestamp: new Date().toISOString(), value: String(await value()) }]
  })
  const resources = { kind: "APIResourceList", apiVersion: "v1", groupVersion: version, resources: [] }
  const port = yield* Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
      const server = createServer({ key: tls.key, cert: tls.cert }, (request, response) => {
        const answer = request.url?.includes("/namespaces/") === true ? list() : Promise.resolve(resources)
        answer.then(
          (body) => response.setHeader("content-type", "application/json").end(JSON.stringify(body)),
          () => response.writeHead(503).end()
        )
      })
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const close = () => {
          server.close()
          server.closeAllConnections()
        }
        resume(Effect.succeed({ port: address !== null && typeof address === "object" ? address.port : 0, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  ).pipe(Effect.map((started) => started.port))
  const [group = "", name = ""] = version.split("/")
  const objects = [
    { apiVersion: "v1", kind: "Service", metadata: { name: "external-metrics", namespace }, spec: { type: "ExternalName", externalName: "localhost" } },
    {
      apiVersion: "apiregistration.k8s.io/v1",
      kind: "APIService",
      metadata: { name: `${name}.${group}` },
      spec: {
        group,
        version: name,
        groupPriorityMinimum: 100,
        versionPriority: 100,
        insecureSkipTLSVerify: true,
        service: { name: "external-metrics", namespace, port }
      }
    }
  ]
  yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input: JSON.stringify({ apiVersion: "v1", kind: "List", items: objects }) })
  yield* command("kubectl", ["wait", "--for=condition=Available", `apiservice/${name}.${group}`, "--timeout=120s"])
})
