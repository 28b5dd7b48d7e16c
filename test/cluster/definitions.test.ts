import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { engineFor } from "@seatrial/engines"
import { Context, Effect, Layer, Option, Schedule } from "effect"
import { enginePod } from "../../packages/operator/src/objects/enginePod.ts"
import { toPodClass } from "../../packages/operator/src/resources/PodClass.ts"
import { revision, run } from "../../packages/operator/test/observations.ts"
import { everyPodField, hostClassCases, modelDeploymentCases } from "../../packages/operator/test/resources/ruleCases.ts"
import { eventually } from "../e2e/eventually.ts"
import { type ControlPlane, startControlPlane } from "./ControlPlane.ts"
import { scratchFolder } from "./scratchFolder.ts"

const root = join(import.meta.dirname, "../..")

/** Runs `kubectl` on a control plane that has the product's definitions. */
class Definitions extends Context.Service<Definitions, ControlPlane["command"]>()("seatrial/test/cluster/Definitions") {
  static readonly layer = Layer.effect(
    Definitions,
    Effect.gen(function* () {
      const { command } = yield* startControlPlane(yield* scratchFolder("definitions"))
      yield* command("kubectl", ["apply", "--validate=strict", "-f", join(root, "k8s/crds")])
      yield* command("kubectl", ["wait", "--for=condition=Established", "crd", "--all", "--timeout=300s"])
      // Established says that objects can be written; short names and explanations are discovered a moment later.
      yield* Effect.retry(command("kubectl", ["explain", "mdep.spec.source"]), Schedule.spaced("200 millis")).pipe(Effect.timeout("5 minutes"))
      return command
    })
  )
}

/** The same, without objects of an earlier test. */
const emptied = Effect.tap(Definitions, (command) =>
  // A test may have deleted a definition.
  Effect.forEach(["mdep", "hc"], (kind) => Effect.ignore(command("kubectl", ["delete", kind, "--all"])), { discard: true })
)

const modelDeployment = (name: string, spec: object) => ({ apiVersion: "seatrial.dev/v1alpha1", kind: "ModelDeployment", metadata: { name }, spec })
const hostClass = (name: string, spec: object) => ({ apiVersion: "seatrial.dev/v1alpha1", kind: "HostClass", metadata: { name }, spec })

/** The API server's answer to an object, as its author reads it. */
const verdict = (command: ControlPlane["command"], object: object, ...options: ReadonlyArray<string>) =>
  command("kubectl", ["apply", "--validate=strict", ...options, "-f", "-"], { input: JSON.stringify(object) }).pipe(
    Effect.as("taken"),
    Effect.catch(({ message }) => Effect.succeed(message))
  )

/** Objects as clusters have them, whose values are long. */
const fillColumns = Effect.fnUntraced(function* (command: ControlPlane["command"]) {
  const id = "dep_01k3v7m8q2w4x6y8z0a2b4c6d8"
  const name = id.replace("_", "-")
  const lastTransitionTime = new Date(0).toISOString()
  const condition = (type: string, status: string) => ({ type, status, reason: "Reason", message: "A message.", lastTransitionTime })
  yield* verdict(command, modelDeployment(name, { source: { repo: "meta-llama/Llama-3.3-70B-Instruct" }, deploymentId: id, model: "llama-3.3-70b" }))
  yield* verdict(command, hostClass("h100-x8-reserved", { ...hostClassCases[0]?.[1], gpuPool: "NVIDIA-H100-80GB-HBM3", gpuCount: 8 }))
  const deployment = {
    model: "globex/llama-3.3-70b",
    phase: "materializing",
    hostClass: "h100-x8-reserved",
    revision: "0123456789ab",
    message: "Downloads the weights. ".repeat(40),
    conditions: [condition("Ready", "Unknown"), condition("Available", "Unknown")]
  }
  const capacity = { nodes: 128, gpus: 1_024, freeGpus: 1_000, models: 100, conditions: [condition("Accepted", "Unknown")] }
  for (const [kind, object, status] of [
    ["mdep", name, deployment],
    ["hc", "h100-x8-reserved", capacity]
  ] as const)
    yield* command("kubectl", ["patch", kind, object, "--subresource=status", "--type=merge", `--patch=${JSON.stringify({ status })}`])
})

layer(Definitions.layer, { excludeTestServices: true, timeout: 1_200_000 })("the definitions on a real control plane", (it) => {
  it.effect(
    "the API server refuses what the operator would refuse, with the same message, and fixed fields cannot change",
    () =>
      Effect.gen(function* () {
        const command = yield* emptied
        const cases = [
          ...modelDeploymentCases.map(([name, spec, broken]) => ({ object: modelDeployment(name, spec), broken })),
          ...hostClassCases.map(([name, spec, broken]) => ({ object: hostClass(name, spec), broken }))
        ]
        for (const { broken, object } of cases) {
          const answer = yield* verdict(command, object, "--dry-run=server")
          assert.include(answer, broken ?? "taken", JSON.stringify(object))
        }
        const change = Effect.fnUntraced(function* (kind: string, name: string, patch: object, ...options: ReadonlyArray<string>) {
          const done = command("kubectl", ["patch", kind, name, "--type=merge", `--patch=${JSON.stringify(patch)}`, ...options])
          return yield* done.pipe(
            Effect.as("taken"),
            Effect.catch(({ message }) => Effect.succeed(message))
          )
        })
        const source = { repo: "seatrial/tiny-chat" }
        const id = "dep_01k3v7m8q2w4x6y8z0a2b4c6d8"
        const own = id.replace("_", "-")
        yield* verdict(command, modelDeployment("tiny", { source, organization: "acme" }))
        yield* verdict(command, modelDeployment(own, { source, deploymentId: id, organization: "acme", model: "tiny" }))
        const [modelId, otherModel] = ["mdl_01k3v7m8q2w4x6y8z0a2b4c6d8", "mdl_01k3v7m8q2w4x6y8z0a2b4c6d9"]
        yield* verdict(command, modelDeployment("named", { source, modelId }))
        yield* verdict(command, hostClass("small", hostClassCases[0]?.[1] ?? {}))
        const refused: ReadonlyArray<readonly [kind: string, name: string, patch: object, says: string]> = [
          ["mdep", "tiny", { spec: { source: { repo: "seatrial/other" } } }, "the repository of a model is immutable"],
          ["mdep", "tiny", { spec: { organization: "other" } }, "organization cannot be changed"],
          ["mdep", "tiny", { spec: { deploymentId: id } }, "deploymentId is set by Seatrial"],
          ["mdep", "tiny", { spec: { modelId } }, "modelId is immutable"],
          ["mdep", "named", { spec: { modelId: otherModel } }, "modelId is immutable"],
          ["mdep", "named", { spec: { modelId: null } }, "modelId is immutable"],
          ["mdep", "named", { spec: { modelId: "first" } }, "spec.modelId"],
          ["mdep", "named", { spec: { model: "named" } }, "modelId names the model: omit model and deploymentId"],
          ["mdep", own, { spec: { serve: false } }, "this object shows a deployment made through the API"],
          ["mdep", "tiny", { spec: { serving: { yarn: { factor: 1 } } } }, "spec.serving.yarn.factor: Invalid value: 1"],
          ["mdep", "tiny", { spec: { serving: { holdSeconds: 86_401 } } }, "spec.serving.holdSeconds"],
          ["mdep", "tiny", { spec: { serving: { maxContext: 0 } } }, "spec.serving.maxContext"],
          ["mdep", "tiny", { spec: { replicas: 65 } }, "spec.replicas"],
          // JavaScript cannot represent these numbers, so the operator could not read the object.
          ["mdep", "tiny", { spec: { serving: { yarn: { factor: 2, originalContext: 2 ** 60 } } } }, "should be less than or equal to 100000000"],
          ["hc", "small", { spec: { gpuMemoryBytes: 2 ** 60 } }, "should be less than or equal to 4398046511104"],
          ["hc", "small", { spec: { memoryBytes: 2 ** 60 } }, "should be less than or equal to 70368744177664"],
          ["hc", "small", { spec: { pricePerGpuHour: "9".repeat(40) } }, "Too long: may not be more than 15"],
          ["hc", "small", { spec: { gpuCount: 2 } }, "create another HostClass"],
          ["hc", "small", { spec: { gpuPool: "NVIDIA-H100-80GB-HBM3" } }, "create another HostClass"],
          [
            "hc",
            "small",
            {
              spec: {
                runtimes: [
                  { runtime: "vllm", image: "a" },
                  { runtime: "vllm", image: "b" }
                ]
              }
            },
            "Duplicate value"
          ]
        ]
        for (const [kind, name, patch, says] of refused) assert.include(yield* change(kind, name, patch), says)
        assert.include(yield* change("mdep", "tiny", { status: { gpus: 2 ** 60 } }, "--subresource=status"), "should be less than or equal to 9007199254740991")
        assert.strictEqual(yield* change("mdep", "tiny", { spec: { serving: { maxContext: 512 } } }), "taken")
        assert.strictEqual(yield* change("mdep", "named", { spec: { serve: false } }), "taken")
        // A refused object can be deleted again.
        for (const organization of ["wrong", null, "acme", null]) assert.strictEqual(yield* change("mdep", "named", { spec: { organization } }), "taken")
        assert.strictEqual(yield* change("mdep", own, { metadata: { labels: { a: "b" } } }), "taken")
        const scale = (name: string, replicas: number) =>
          command("kubectl", ["scale", "mdep", name, `--replicas=${replicas}`]).pipe(Effect.catch(({ message }) => Effect.succeed(message)))
        assert.include(yield* scale("tiny", 2), "scaled")
        assert.strictEqual(yield* command("kubectl", ["get", "mdep", "tiny", "-o", "jsonpath={.spec.replicas}"]), "2")
        assert.include(yield* scale("tiny", 0), "spec.replicas")
        assert.include(yield* scale(own, 2), "change the number of engines with seatrial scale")
      }).pipe(Effect.scoped),
    1_200_000
  )

  it.effect(
    "the API server takes the pod of a host class with every field for pods, and gives it the QoS class Guaranteed if the host class asks for that",
    () =>
      Effect.gen(function* () {
        const command = yield* emptied
        const engine = engineFor("reference") ?? assert.fail()
        const settings = { fetchImage: "seatrial:1", namespace: "default", pullSecrets: [] }
        const podOf = (spec: typeof everyPodField) => {
          const podClass = Option.getOrThrow(toPodClass({ metadata: { name: "every" }, spec }))
          return enginePod({ run, revision, podClass, engine, settings, weightsClaim: "weights", avoid: ["slow"] })
        }
        const pod = podOf(everyPodField)
        yield* command("kubectl", ["create", "priorityclass", "high", "--value=1000"])
        // The token controller makes the account a moment after the namespace.
        const created = verdict(command, pod, "--dry-run=server", "--namespace=default")
        assert.strictEqual(yield* eventually("the account of the namespace exists", created, (answer) => !answer.includes("serviceaccount")), "taken")
        const qos = (spec: typeof everyPodField) =>
          command("kubectl", ["create", "--dry-run=server", "--namespace=default", "-o", "jsonpath={.status.qosClass}", "-f", "-"], {
            input: JSON.stringify(podOf(spec))
          })
        assert.deepStrictEqual([yield* qos(everyPodField), yield* qos({ ...everyPodField, guaranteed: true })], ["Burstable", "Guaranteed"])
      }).pipe(Effect.scoped),
    1_200_000
  )

  it.effect(
    "kubectl explains every field, fills in defaults, and prints the columns",
    () =>
      Effect.gen(function* () {
        const command = yield* emptied
        const explain = (path: string) => command("kubectl", ["explain", path])
        const words: ReadonlyArray<readonly [path: string, ...says: ReadonlyArray<string>]> = [
          ["mdep", "A model from a hub repository", "and delete it to retire the model"],
          ["mdep.spec", "Changing the specification starts a new run", "Whether the verified revision gets the model's traffic"],
          ["mdep.spec.source.ref", "Branch, tag or commit"],
          ["mdep.spec.serving.yarn", "Factor by which the original context is extended"],
          ["mdep.status.queue", "Place in the queue of the host class", "enum: OlderRun, OrganizationLimit, HostClass, Capacity"],
          ["mdep.status.cause", "Unschedulable, ImagePullBackOff, OOMKilled"],
          ["mdep.status.conditions", "When the status last changed"],
          ["hc.spec", "GPU type", "Price of one GPU for one hour"]
        ]
        for (const [path, ...says] of words) {
          const text = (yield* explain(path)).replaceAll(/\s+/g, " ")
          for (const each of says) assert.include(text, each)
        }
        // A field without a description would have an empty line.
        for (const kind of ["mdep", "hc"]) assert.notInclude(yield* command("kubectl", ["explain", kind, "--recursive"]), "<no description>")

        const input = JSON.stringify(modelDeployment("tiny", { source: { repo: "seatrial/tiny-chat" } }))
        yield* command("kubectl", ["apply", "--validate=strict", "-f", "-"], { input })
        assert.strictEqual(yield* command("kubectl", ["get", "mdep", "tiny", "-o", "jsonpath={.spec.serve}"]), "true")
        const header = (text: string) =>
          text
            .split("\n")[0]
            ?.trim()
            .split(/\s{2,}/)
        assert.deepStrictEqual(header(yield* command("kubectl", ["get", "modeldeployments"])), ["NAME", "MODEL", "PHASE", "READY", "AVAILABLE", "AGE"])
        const wide = [
          "HOST CLASS",
          "MESSAGE",
          "DESIRED",
          "GRANTED",
          "READY ENGINES",
          "REVISION",
          "REPOSITORY",
          "COMMIT",
          "ENGINE",
          "CONTEXT",
          "GPUS",
          "PLACE",
          "ENDPOINT",
          "DEPLOYMENT"
        ]
        assert.deepStrictEqual(header(yield* command("kubectl", ["get", "mdep", "-o", "wide"]))?.slice(6), wide)
        yield* verdict(command, hostClass("small", hostClassCases[0]?.[1] ?? {}))
        const columns = ["NAME", "GPU", "NODES", "GPUS", "FREE", "MODELS", "ACCEPTED", "AGE"]
        assert.deepStrictEqual(header(yield* command("kubectl", ["get", "hc"])), columns)
        assert.deepStrictEqual(header(yield* command("kubectl", ["get", "hc", "-o", "wide"]))?.slice(8), [
          "COUNT",
          "RUNTIME",
          "SIMULATED",
          "MEMORY",
          "PRICE",
          "IMAGE"
        ])
        yield* fillColumns(command)
        for (const kind of ["mdep", "hc"]) {
          const printed = yield* command("kubectl", ["get", kind])
          for (const line of printed.split("\n")) assert.isAtMost(line.trimEnd().length, 100, line)
        }
        assert.include(yield* command("kubectl", ["get", "seatrial"]), "modeldeployment.seatrial.dev/tiny")
      }).pipe(Effect.scoped),
    1_200_000
  )

  it.effect(
    "definitions and protected serving models are deleted only with confirmation",
    () =>
      Effect.gen(function* () {
        const command = yield* emptied
        yield* command("kubectl", ["apply", "--validate=strict", "-f", join(root, "k8s/deletion-guards.yaml")])
        yield* verdict(command, modelDeployment("tiny", { source: { repo: "seatrial/tiny-chat" } }))
        const remove = (...options: ReadonlyArray<string>) =>
          command("kubectl", ["delete", "crd", "modeldeployments.seatrial.dev", "--timeout=60s", ...options]).pipe(
            Effect.as("deleted"),
            Effect.catch(({ message }) => Effect.succeed(message))
          )
        // A policy takes effect a moment after it was created.
        const refused = yield* eventually("the deletion is refused", remove("--dry-run=server"), (answer) => answer !== "deleted")
        assert.include(refused, "kubectl annotate crd modeldeployments.seatrial.dev seatrial.dev/delete-definition=yes")
        assert.include(yield* remove(), "deletes every object of it, in all namespaces")
        assert.include(yield* command("kubectl", ["get", "mdep", "-o", "name"]), "tiny")

        // A served model is protected only if its object asks for that: without the annotation, a deletion is how a model is retired.
        const removeModel = command("kubectl", ["delete", "mdep", "tiny", "--timeout=60s"]).pipe(
          Effect.as("deleted"),
          Effect.catch(({ message }) => Effect.succeed(message))
        )
        const serves = command("kubectl", ["patch", "mdep", "tiny", "--subresource=status", "--type=merge", '--patch={"status":{"endpoint":"acme/tiny"}}'])
        yield* serves
        yield* command("kubectl", ["annotate", "mdep", "tiny", "seatrial.dev/deletion-protection=yes"])
        assert.include(yield* removeModel, "the model acme/tiny serves, and deleting this object retires it")
        assert.include(yield* removeModel, "annotate modeldeployment tiny seatrial.dev/deletion-protection-")
        // Under either of its names, the controller manager deletes what a namespace holds.
        for (const name of ["system:kube-controller-manager", "system:serviceaccount:kube-system:namespace-controller"])
          yield* command("kubectl", ["delete", "mdep", "tiny", "--dry-run=server", `--as=${name}`, "--as-group=system:masters"])
        yield* command("kubectl", ["create", "namespace", "team"])
        const protectedModel = modelDeployment("theirs", { source: { repo: "seatrial/tiny-chat" } })
        const theirs = { ...protectedModel.metadata, namespace: "team", annotations: { "seatrial.dev/deletion-protection": "yes" } }
        yield* verdict(command, { ...protectedModel, metadata: theirs })
        const patch = '--patch={"status":{"endpoint":"acme/theirs"}}'
        yield* command("kubectl", ["patch", "mdep", "theirs", "--namespace=team", "--subresource=status", "--type=merge", patch])
        yield* command("kubectl", ["delete", "namespace", "team", "--timeout=120s"])
        yield* command("kubectl", ["annotate", "mdep", "tiny", "seatrial.dev/deletion-protection-"])
        assert.strictEqual(yield* removeModel, "deleted")
        yield* verdict(command, modelDeployment("tiny", { source: { repo: "seatrial/tiny-chat" } }))

        yield* command("kubectl", ["annotate", "crd", "modeldeployments.seatrial.dev", "seatrial.dev/delete-definition=yes"])
        assert.strictEqual(yield* remove(), "deleted")
      }).pipe(Effect.scoped),
    1_200_000
  )

  it.effect(
    "a used host class is deleted only with confirmation",
    () =>
      Effect.gen(function* () {
        const command = yield* emptied
        yield* command("kubectl", ["apply", "--validate=strict", "-f", join(root, "k8s/deletion-guards.yaml")])
        const name = "small"
        const remove = command("kubectl", ["delete", "hc", name]).pipe(
          Effect.as("deleted"),
          Effect.catch(({ message }) => Effect.succeed(message))
        )
        const say = (status: object) =>
          command("kubectl", ["patch", "hc", name, "--subresource=status", "--type=merge", `--patch=${JSON.stringify({ status })}`])
        yield* verdict(command, hostClass(name, hostClassCases[0]?.[1] ?? {}))
        yield* say({ models: 1, engines: 0, modelNames: ["acme/tiny"] })
        // A policy works a moment after it was made, and until then the deletion is a rehearsal.
        const rehearsed = command("kubectl", ["delete", "hc", name, "--dry-run=server"]).pipe(
          Effect.as("deleted"),
          Effect.catch(({ message }) => Effect.succeed(message))
        )
        const answer = yield* eventually("the deletion is refused", rehearsed, (verdict) => verdict !== "deleted")
        assert.include(answer, "the host class small is in use (models: acme/tiny)")
        assert.include(yield* remove, "kubectl annotate hostclass small seatrial.dev/delete-in-use=yes")
        // No model uses it anymore.
        yield* say({ models: 0, modelNames: [] })
        assert.strictEqual(yield* remove, "deleted")
        yield* verdict(command, hostClass(name, hostClassCases[0]?.[1] ?? {}))
        yield* say({ models: 0, engines: 2 })
        assert.include(yield* remove, "is in use")
        yield* command("kubectl", ["annotate", "hostclass", name, "seatrial.dev/delete-in-use=yes"])
        assert.strictEqual(yield* remove, "deleted")
      }).pipe(Effect.scoped),
    1_200_000
  )
})
