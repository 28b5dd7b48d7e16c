import { assert, layer } from "@effect/vitest"
import { CatalogModel, Receipt } from "@seatrial/domain"
import { ModelDeployment } from "@seatrial/operator"
import { Effect, Schema } from "effect"
import { codeOf, makeCaller } from "../Caller.ts"
import { runCommand } from "../ChildProgram.ts"
import { ask, requestIdOf, wholeOf } from "../chat.ts"
import { objectsOfRuns, openCluster } from "../cluster.ts"
import { eventually } from "../eventually.ts"
import { startSystem } from "../LocalSystem.ts"
import { Served } from "../Served.ts"

const Models = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(CatalogModel) })
const MadeKey = Schema.fromJsonString(Schema.Struct({ secret: Schema.String }))
const rates = ["--input", "1000000", "--output", "3000000", "--cache-read", "0", "--cache-write", "0"]

layer(Served.layerWith({ SEATRIAL_DURABLE: "true" }), { excludeTestServices: true, timeout: 600_000 })("an administered model", (it) => {
  it.effect(
    "is published, unpublished, disabled and enabled on one revision; after a delete nothing is left in the cluster, even if all programs were killed",
    () =>
      Effect.gen(function* () {
        const { caller, folder, kube, model, operation, system } = yield* Served
        const slug = model.slice(model.indexOf("/") + 1)
        const models = (verb: string, ...more: ReadonlyArray<string>) =>
          runCommand(["admin", "models", verb, "--org", "local", slug, "--json", ...more], { SEATRIAL_STATE: folder })
        const answers = (name: string) => eventually(`${name} answers`, ask(caller, name), ({ status }) => status === 200)
        const isUnknown = (name: string) => eventually(`${name} is not known`, ask(caller, name), (answer) => answer.status === 404)
        const served = wholeOf(yield* ask(caller, model)).text
        const engines = yield* objectsOfRuns(kube)
        const { revision_id } = yield* caller.deployment(operation.id)

        yield* models("publish", ...rates, "--yes")
        const own = yield* answers(slug)
        assert.deepInclude(wholeOf(own), { model: slug, text: served })
        // Its own organization pays for the GPUs. All others pay by the rates.
        const free = yield* caller.read(`/v1/receipts/${requestIdOf(own)}`, Receipt)
        const admin = (...words: ReadonlyArray<string>) => runCommand(["admin", ...words], { SEATRIAL_STATE: folder })
        yield* admin("orgs", "create", "guest")
        yield* admin("members", "add", "--org", "guest", "--email", "guest@guest.test", "--role", "owner")
        const created = yield* admin("keys", "create", "--org", "guest", "--email", "guest@guest.test", "--json")
        const { secret } = Schema.decodeUnknownSync(MadeKey)(created)
        const guest = makeCaller(system.state.address, secret)
        const paid = yield* ask(guest, slug)
        assert.deepInclude(wholeOf(paid), { model: slug, text: served })
        const receipt = yield* guest.read(`/v1/receipts/${requestIdOf(paid)}`, Receipt)
        const { input_tokens, output_tokens } = receipt.usage
        assert.deepStrictEqual([receipt.model, receipt.cost_micros], [slug, String(input_tokens + 3 * output_tokens)])
        assert.deepStrictEqual([free.cost_micros, free.verification, free.hf_revision], ["0", receipt.verification, receipt.hf_revision])
        assert.isAbove(receipt.verification?.checks.length ?? 0, 0)
        assert.strictEqual((yield* caller.call("GET", `/v1/receipts/${requestIdOf(paid)}`)).status, 404)
        const published = yield* caller.read("/v1/catalog/models", Models)
        assert.deepInclude(
          published.data.find(({ id }) => id === slug),
          { price_in_micros_per_mtok: "1000000", price_out_micros_per_mtok: "3000000" }
        )
        yield* isUnknown(model)
        yield* models("unpublish", "--yes")
        assert.strictEqual(wholeOf(yield* answers(model)).text, served)
        yield* isUnknown(slug)
        assert.deepStrictEqual(yield* objectsOfRuns(kube), engines)

        yield* models("disable", "--yes")
        const refused = yield* isUnknown(model)
        assert.strictEqual(codeOf(refused), "model_not_found")
        yield* eventually("its GPUs are free", objectsOfRuns(kube), (objects) => objects.length === 0)
        yield* models("enable")
        assert.strictEqual(wholeOf(yield* answers(model)).text, served)
        const after = yield* caller.deployment(operation.id)
        assert.deepStrictEqual([after.status, after.revision_id, after.revision?.status], ["activated", revision_id, "active"])

        const unfinished = yield* caller.deploy({ model_id: operation.model_id, ref: "v1" })
        yield* models("delete", "--yes")
        yield* system.program.signal("SIGKILL")
        yield* system.program.exited
        const { state } = yield* startSystem(folder, {})
        const again = makeCaller(state.address, state.api_key)
        const cluster = yield* openCluster(state.kubeconfig)
        yield* eventually("nothing of the model runs", objectsOfRuns(cluster), (objects) => objects.length === 0)
        yield* eventually("its custom resources are gone", Effect.orDie(cluster.list(ModelDeployment, { namespace: "seatrial" })), (all) => all.length === 0)
        assert.strictEqual((yield* ask(again, model)).status, 404)
        assert.strictEqual((yield* again.deployment(unfinished.id)).status, "cancelled")
        assert.deepStrictEqual(yield* makeCaller(state.address, secret).read(`/v1/receipts/${requestIdOf(paid)}`, Receipt), receipt)
      }),
    600_000
  )
})
