import { assert, it } from "@effect/vitest"
import { HostClassResource } from "@seatrial/operator"
import { Effect } from "effect"
import { makeCaller } from "../Caller.ts"
import { openCluster } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { makeStateFolder, startSystem } from "../LocalSystem.ts"
import { source } from "../Served.ts"

it.live(
  "on the user's cluster without a host class the system becomes ready, reports what is missing, and detects a new host class",
  () =>
    Effect.gen(function* () {
      const owner = yield* startSystem(yield* makeStateFolder, { SEATRIAL_PROGRAMS: "server" })
      const kube = yield* openCluster(owner.state.kubeconfig)
      const classes = yield* kube.list(HostClassResource, {})
      yield* Effect.forEach(classes, ({ metadata }) => kube.remove(HostClassResource, metadata.name, undefined))

      const { program, state } = yield* startSystem(yield* makeStateFolder, { KUBECONFIG: owner.state.kubeconfig, HF_ENDPOINT: owner.state.hub })
      const output = yield* eventually("it has reported that it is ready", Effect.sync(program.output), (text) => text.includes("Ctrl-C"))
      assert.include(output, "no HostClass")
      assert.include(output, `kubectl --kubeconfig ${owner.state.kubeconfig} apply -f k8s/samples/`)
      const caller = makeCaller(state.address, state.api_key)
      const preview = caller.call("POST", "/v1/deployment-previews", { source })
      assert.include((yield* preview).text, "host_class_unknown")

      for (const { metadata, spec } of classes) {
        const hostClass = { apiVersion: "seatrial.dev/v1alpha1", kind: "HostClass", metadata: { name: metadata.name }, spec }
        yield* kube.apply(HostClassResource, hostClass)
      }
      yield* eventually("the preview knows the host class", preview, ({ text }) => text.includes('"kind":"derived"'))
    }).pipe(Effect.scoped, Effect.orDie),
  600_000
)
