import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { at, eventually } from "./KubeServer.ts"
import { type Behaviours, openStage, pod } from "./Stage.ts"
import { installWidgets, widget } from "./widgets.ts"

const open = Effect.gen(function* () {
  yield* installWidgets
  const stage = yield* openStage
  const flag = `--namespace=${stage.namespace}`
  // Its discovery may be older than the definition.
  yield* eventually(stage.get("/openapi/v3"), ({ body }) => at(body, "paths.apis/contract\\.dev/v1") !== undefined)
  return { ...stage, kubectl: (args: ReadonlyArray<string>, input?: string) => stage.kubectl([...args, flag], input) }
})

/** What `kubectl` needs of a server to be of use. */
export const commands: Behaviours = {
  "kubectl apply validates, creates, changes and deletes": Effect.gen(function* () {
    const { kubectl } = yield* open
    const applied = yield* kubectl(["apply", "--validate=strict", "-f", "-"], JSON.stringify(widget("a", { model: "abc" })))
    assert.strictEqual(applied.trim(), "widget.contract.dev/a created")
    const again = yield* kubectl(["apply", "-f", "-"], JSON.stringify(widget("a", { model: "abc" })))
    assert.strictEqual(again.trim(), "widget.contract.dev/a unchanged")
    const changed = yield* kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], JSON.stringify(widget("a", { model: "abc", size: 4 })))
    assert.strictEqual(changed.trim(), "widget.contract.dev/a serverside-applied")
    const gone = yield* kubectl(["delete", "wdg", "a"])
    assert.match(gone, /^widget\.contract\.dev "a" deleted/)
  }),

  "kubectl get shows the columns, and more of them with -o wide": Effect.gen(function* () {
    const { kubectl } = yield* open
    yield* kubectl(["apply", "-f", "-"], JSON.stringify(widget("a", { model: "abc" })))
    assert.match(yield* kubectl(["get", "widgets"]), /^NAME +PHASE +READY +AGE\na +[\dms]+\n$/)
    assert.match(yield* kubectl(["get", "wdg", "-o", "wide"]), /^NAME +PHASE +READY +MODEL +AGE\na +abc +[\dms]+\n$/)
    assert.strictEqual(yield* kubectl(["get", "contract", "-o", "name"]), "widget.contract.dev/a\n")
    assert.strictEqual(yield* kubectl(["get", "widget", "a", "-o", "jsonpath={.spec.size}"]), "3")
  }),

  "kubectl scale changes the number of an object, and reads it once it is set": Effect.gen(function* () {
    const { get, group, kubectl } = yield* open
    yield* kubectl(["apply", "-f", "-"], JSON.stringify(widget("a", { model: "abc" })))
    const path = `${group("contract.dev/v1", "widgets")}/a/scale`
    const unset = yield* get(path)
    assert.deepStrictEqual([unset.status, at(unset.body, "reason")], [500, "InternalError"])
    assert.include(yield* kubectl(["scale", "widget", "a", "--replicas=5"]), "scaled")
    assert.strictEqual(yield* kubectl(["get", "widget", "a", "-o", "jsonpath={.spec.copies} {.spec.model} {.metadata.generation}"]), "5 abc 2")
    assert.deepInclude((yield* get(path)).body, { kind: "Scale", apiVersion: "autoscaling/v1", spec: { replicas: 5 } })
  }),

  "kubectl explain reads the schema": Effect.gen(function* () {
    const { kubectl } = yield* open
    const output = yield* kubectl(["explain", "widget.spec.model"])
    assert.match(output, /GROUP: +contract\.dev\nKIND: +Widget\nVERSION: +v1/)
    assert.include(output, "What it is made after.")
    const all = yield* kubectl(["explain", "widget.spec"])
    assert.match(all, /model\t<string> -required-/)
    assert.match(all, /enum: slow, fast/)
  }),

  "kubectl describe shows the object and its events": Effect.gen(function* () {
    const { core, get, group, kubectl, namespace, post } = yield* open
    yield* kubectl(["apply", "-f", "-"], JSON.stringify(widget("a", { model: "abc" })))
    const uid = at((yield* get(`${group("contract.dev/v1", "widgets")}/a`)).body, "metadata.uid")
    const involvedObject = { apiVersion: "contract.dev/v1", kind: "Widget", namespace, name: "a", uid }
    yield* post(core("events"), { metadata: { name: "a.1", namespace }, involvedObject, reason: "Tested", message: "It was.", type: "Normal" })
    const output = yield* kubectl(["describe", "widget", "a"])
    assert.match(output, /Name: +a\n/)
    assert.match(output, /Normal +Tested +.*It was\./)
  }),

  "kubectl wait returns when a condition becomes true or pods are deleted": Effect.gen(function* () {
    const { group, kubectl, patch, pods, post } = yield* open
    yield* kubectl(["apply", "-f", "-"], JSON.stringify(widget("a", { model: "abc" })))
    const status = { conditions: [{ type: "Ready", status: "True" }] }
    yield* patch("merge", `${group("contract.dev/v1", "widgets")}/a/status`, { status })
    assert.include(yield* kubectl(["wait", "--for=condition=Ready", "widget/a", "--timeout=300s"]), "condition met")
    yield* post(pods, pod("b", {}, { schedulerName: "nobody" }))
    yield* kubectl(["delete", "pod", "b", "--wait=false"])
    yield* kubectl(["wait", "--for=delete", "pod/b", "--timeout=300s"])
  })
}
