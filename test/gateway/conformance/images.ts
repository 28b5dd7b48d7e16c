import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { answers, wholeAnswer } from "../../../packages/gateway/test/fakeEngine.ts"
import { dataUrl, jpeg, limits, padded, png } from "../../../packages/gateway/test/pictures.ts"
import { soon } from "../../../packages/gateway/test/stage.ts"
import { publicAddress } from "./imageHost.ts"
import { asks, at, bodyOf, languages, type Promises, Stage } from "./Stage.ts"

const max = limits.max_bytes_per_image
const create = "chat.completions.create"

/** Images, and the code of their refusal. */
const cases: ReadonlyArray<readonly [what: string, image: Buffer, code: string | null]> = [
  ["a PNG", png(8, 8), null],
  ["a JPEG", jpeg(8, 8), null],
  ["a PNG of the most pixels", png(2_048, 2_048), null],
  ["a PNG of one row more", png(2_048, 2_049), "image_too_large"],
  ["a JPEG of the longest side", jpeg(4_096, 1_024), null],
  ["a JPEG that is one wider", jpeg(4_097, 1), "image_too_large"],
  ["a file of the most bytes", padded(png(8, 8), max), null],
  ["a file of one byte more", padded(jpeg(8, 8), max + 1), "image_file_too_large"],
  ["an empty file", Buffer.alloc(0), "empty_image_file"],
  ["a small file of 30,000 x 30,000", png(30_000, 30_000), "image_too_large"],
  ["a JPEG of 65 scans", jpeg(8, 8, 65), "image_parse_error"],
  ["a GIF", Buffer.from("GIF89a\x01\0\x01\0", "latin1"), "unsupported_image_media_type"]
]

const chatOf = (...urls: ReadonlyArray<string>) => ({
  model: "acme/able",
  messages: [
    { role: "user", content: [{ type: "text", text: "What is this?" }, ...urls.map((url) => ({ type: "image_url", image_url: { url, detail: "auto" } }))] }
  ]
})
const place = "messages[0].content[1].image_url.url"

export const promisesOfImages = (it: Promises): void => {
  for (const language of languages) {
    it.effect(`28 ${language}: images in the request and from https URLs reach the engine up to each limit and are refused beyond it`, () =>
      Effect.gen(function* () {
        const { gazing, host, play } = yield* Stage
        const asked = (...urls: ReadonlyArray<string>) => asks(language, { address: gazing, call: create, args: chatOf(...urls) })
        for (const [what, image, code] of cases) {
          host.paths.set("/image", ({ response }) => response.writeHead(200, { "content-type": "image/webp" }).end(image))
          for (const url of [dataUrl(image, "image/webp"), "https://images.test/image"]) {
            const calls = play(answers(wholeAnswer("a")))
            const { error } = yield* asked(url)
            const where = `${what}, ${url.slice(0, 5)}`
            assert.deepStrictEqual([error?.code ?? null, error?.param ?? null], [code, code === null ? null : place], where)
            assert.strictEqual(calls.length, code === null ? 1 : 0, where)
            if (code !== null) continue
            const { image_url, type } = Object.assign({ image_url: null, type: null }, at(bodyOf(calls[0]), "messages", 0, "content", 1))
            const declared = image.subarray(0, 1).equals(Buffer.from([0xff])) ? "image/jpeg" : "image/png"
            assert.strictEqual(type, "image_url")
            assert.isTrue(at(image_url, "url") === dataUrl(image, declared), where)
            assert.deepStrictEqual(Object.keys(image_url ?? {}), ["url"])
          }
        }
        const one = dataUrl(png(8, 8))
        host.paths.set("/image", ({ response }) => response.writeHead(200).end(jpeg(8, 8)))
        const both = play(answers(wholeAnswer("a")))
        assert.isNull((yield* asked(one, "https://images.test/image")).error)
        assert.strictEqual(both.length, 1)
        const calls = play(answers(wholeAnswer("a")))
        assert.deepInclude((yield* asked(one, one, one)).error, { code: "too_many_images", param: "messages[0].content[3].image_url.url" })
        for (const url of ["http://images.test/image", "file:///etc/passwd", "https://8.8.8.8/a", png(8, 8).toString("base64")]) {
          assert.deepInclude((yield* asked(url)).error, { kind: "BadRequestError", code: "invalid_image_url", param: place }, url)
        }
        assert.strictEqual(calls.length, 0)
        host.paths.clear()
      })
    )

    it.effect(
      `29 ${language}: an image from a private, rebinding, redirecting, endless or slow host is refused in time, and no private address is contacted`,
      () =>
        Effect.gen(function* () {
          const { gazing, host, play, record } = yield* Stage
          const calls = play(answers(wholeAnswer("a")))
          const { asked, dialled, names, paths } = host
          const before = dialled.length
          const refused = Effect.fnUntraced(function* (url: string, code = "failed_to_download_image") {
            const { error } = yield* asks(language, { address: gazing, call: create, args: chatOf(url) })
            assert.deepInclude(error, { kind: "BadRequestError", status: 400, code, param: place }, url)
            if (code === "failed_to_download_image") assert.include(error?.message ?? "", "The image could not be downloaded.")
            const { error: told, state } = yield* record(error?.requestId ?? null)
            assert.deepStrictEqual([state, told?.code], ["refused", code])
            assert.notInclude(JSON.stringify(told), "secret")
          })
          for (const address of ["10.96.0.1", "127.0.0.1", "169.254.169.254", "::1", "fd00:ec2::254", "::ffff:10.0.0.1"]) {
            names.set("inside.images.test", () => [address])
            yield* refused("https://inside.images.test/latest/meta-data?token=secret")
          }
          assert.strictEqual(dialled.length, before)
          let times = 0
          names.set("rebinding.images.test", () => (times++ % 2 === 0 ? [publicAddress] : ["169.254.169.254"]))
          paths.set("/moved", ({ response }) => response.writeHead(302, { location: "https://rebinding.images.test/secret" }).end())
          yield* refused("https://rebinding.images.test/moved")
          paths.set("/http", ({ response }) => response.writeHead(302, { location: "http://images.test/secret" }).end())
          yield* refused("https://images.test/http")
          paths.set("/endless", ({ response }) => {
            const more = () => {
              while (response.write(Buffer.alloc(65_536)));
            }
            response.writeHead(200).on("drain", more)
            more()
          })
          yield* refused("https://images.test/endless?secret", "failed_to_download_image")
          yield* refused("https://images.test/endless", "image_file_too_large")
          paths.set("/slow", () => {})
          yield* refused("https://images.test/slow")
          for (const { addresses } of dialled) assert.deepStrictEqual(addresses, [publicAddress])
          yield* soon(() => asked.every(({ isClosed }) => isClosed()))
          assert.strictEqual(calls.length, 0)
          names.delete("inside.images.test")
          paths.clear()
        })
    )
  }
}
