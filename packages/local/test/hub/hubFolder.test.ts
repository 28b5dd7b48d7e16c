import { createHash } from "node:crypto"
import { appendFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { writeTrained } from "@seatrial/reference-engine/sample"
import { Effect, Option } from "effect"
import { readHubFolder } from "../../src/hub/readHubFolder.ts"
import { makeRepository } from "../../src/hub/SampleRepository.ts"
import { withHub } from "./withHub.ts"

const samples = [makeRepository({ name: "seatrial/tiny-chat", commits: [{ title: "one", files: { "config.json": "{}" } }] })]

/** A folder with these files until the test ends. */
const folderWith = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = realpathSync(mkdtempSync(join(tmpdir(), "seatrial-hub-folder-")))
      for (const [path, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, path)), { recursive: true })
        writeFileSync(join(folder, path), text)
      }
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

const refusalOf = (folder: string) => Effect.map(Effect.flip(readHubFolder(folder, samples)), ({ message }) => message)

describe("a hub of own folders", () => {
  it.effect("offers a model folder as a repository that previews and downloads like one of the hub", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({})
      const path = join(folder, "ada/my-model")
      mkdirSync(path, { recursive: true })
      writeTrained(path, "tiny-chat")
      mkdirSync(join(path, ".git"))
      writeFileSync(join(path, ".git/config"), "not part of the model")
      const repositories = yield* readHubFolder(folder, samples)
      yield* withHub(
        (hub, _, address) =>
          Effect.gen(function* () {
            const facts = yield* hub.inspect({ repo: "ada/my-model" }, Option.none())
            assert.deepStrictEqual([facts.parameters, facts.commit], [722_048, repositories[0]?.commits[0].id])
            assert.isFalse(facts.files.some(({ path }) => path.includes(".git")))
            const weights = facts.files.find(({ path }) => path === "model.safetensors")
            const body = Buffer.from(
              yield* Effect.promise(async () => (await fetch(`${address}/ada/my-model/resolve/${facts.commit}/model.safetensors`)).arrayBuffer())
            )
            assert.deepStrictEqual([body.length, createHash("sha256").update(body).digest("hex")], [weights?.size, weights?.sha256])
            const range = { headers: { range: "bytes=8-15" } }
            const part = yield* Effect.promise(async () => (await fetch(`${address}/ada/my-model/resolve/main/model.safetensors`, range)).arrayBuffer())
            assert.deepStrictEqual(Buffer.from(part), body.subarray(8, 16))
          }),
        { repositories }
      )
    }).pipe(Effect.scoped)
  )

  it.effect("keeps the commit of a model while its files are the same, and changes it with them", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "ada/one/config.json": "{}", "ada/one/model.safetensors": "1" })
      const commit = Effect.map(readHubFolder(folder, samples), ([repository]) => repository?.commits[0].id)
      const first = yield* commit
      assert.strictEqual(yield* commit, first)
      writeFileSync(join(folder, "ada/one/model.safetensors"), "2")
      assert.notStrictEqual(yield* commit, first)
    }).pipe(Effect.scoped)
  )

  it.effect("sends nothing of a large file that was changed after its hash was computed", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "ada/one/config.json": "{}", "ada/one/model.safetensors": "weights" })
      const repositories = yield* readHubFolder(folder, samples)
      appendFileSync(join(folder, "ada/one/model.safetensors"), "!")
      yield* withHub(
        (_, __, address) =>
          Effect.gen(function* () {
            const answer = yield* Effect.promise(() => fetch(`${address}/ada/one/resolve/main/model.safetensors`))
            assert.deepStrictEqual([answer.status, yield* Effect.promise(() => answer.text())], [500, ""])
            assert.match(answer.headers.get("x-error-message") ?? "", /model\.safetensors was changed.*Restart/)
          }),
        { repositories }
      )
    }).pipe(Effect.scoped)
  )

  it.effect("reads the license of the card, and follows links to files in the folder", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({
        "ada/one/config.json": "{}",
        "ada/one/README.md": "---\nlicense: mit\n---\n",
        "ada/two/README.md": "---\nlicense: [\n---\n"
      })
      symlinkSync("../one/config.json", join(folder, "ada/two/config.json"))
      const repositories = yield* readHubFolder(folder, samples)
      assert.deepStrictEqual(
        repositories.map(({ commits: [{ files }], license, name }) => [name, license, files.map(({ path }) => path).join()]),
        [
          ["ada/one", "mit", "README.md,config.json"],
          ["ada/two", null, "README.md,config.json"]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("refuses a folder that does not exist, is a file, is empty, or is a model itself", () =>
    Effect.gen(function* () {
      const folder = yield* folderWith({ "model/config.json": "{}", "empty/.hidden": "" })
      assert.match(yield* refusalOf(join(folder, "none")), /none does not exist\. Set --hub-folder/)
      assert.match(yield* refusalOf(join(folder, "model/config.json")), /config\.json is not a folder/)
      assert.match(yield* refusalOf(join(folder, "empty")), /empty has no models\. Seatrial expects each model in .*owner\/name, with its config\.json/)
      assert.match(yield* refusalOf(join(folder, "model")), /model is a model itself\. Seatrial expects/)
      assert.match(yield* refusalOf(folder), /model is a model itself\. Seatrial expects/)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses a folder without config.json, a wrong name, and a name that is taken", () =>
    Effect.gen(function* () {
      assert.match(yield* refusalOf(yield* folderWith({ "ada/one/model.safetensors": "" })), /ada\/one is not a model: it has no config\.json/)
      assert.match(yield* refusalOf(yield* folderWith({ "ada/my model/config.json": "{}" })), /my model has no valid name\. Rename it/)
      assert.match(yield* refusalOf(yield* folderWith({ "Seatrial/Tiny-Chat/config.json": "{}" })), /has the name of the sample seatrial\/tiny-chat/)
      assert.match(yield* refusalOf(yield* folderWith({ "ada/one/config.json": "{}", "Ada/One/config.json": "{}" })), /has the name of .*Ada\/One\. Rename/)
    }).pipe(Effect.scoped)
  )

  it.effect("refuses links that leave the folder, links to folders, and files that are none", () =>
    Effect.gen(function* () {
      const outside = yield* folderWith({ secret: "x", "model/config.json": "{}" })
      const model = { "ada/one/config.json": "{}" }
      const linked = yield* folderWith(model)
      symlinkSync(join(outside, "secret"), join(linked, "ada/one/tokenizer.json"))
      assert.match(yield* refusalOf(linked), /tokenizer\.json is a link to a file outside of .*copy the file into the folder/)
      const linkedFolder = yield* folderWith(model)
      symlinkSync(join(outside, "model"), join(linkedFolder, "ada/two"))
      assert.match(yield* refusalOf(linkedFolder), /ada\/two is a link\. Seatrial does not follow links to models/)
      const inner = yield* folderWith(model)
      symlinkSync(inner, join(inner, "ada/one/loop"))
      assert.match(yield* refusalOf(inner), /loop is a link to a file outside of|loop is not a regular file/)
      const broken = yield* folderWith(model)
      symlinkSync("nothing", join(broken, "ada/one/tokenizer.json"))
      assert.match(yield* refusalOf(broken), /tokenizer\.json is a link to a file that does not exist/)
      const special = yield* folderWith(model)
      yield* Effect.acquireRelease(
        Effect.callback<Server>((resume) => {
          const server = createServer().listen(join(special, "ada/one/model.safetensors"), () => resume(Effect.succeed(server)))
        }),
        (server) => Effect.sync(() => server.close())
      )
      assert.match(yield* refusalOf(special), /model\.safetensors is not a regular file/)
    }).pipe(Effect.scoped)
  )
})
