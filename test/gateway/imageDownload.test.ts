import { createServer } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Ids, OrgId } from "@seatrial/domain"
import { ConfigProvider, Context, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import { GatewayConfig } from "../../packages/gateway/src/GatewayConfig.ts"
import { ImageFetcher } from "../../packages/gateway/src/images/ImageFetcher.ts"
import { Internet } from "../../packages/gateway/src/images/Internet.ts"
import { imageUrl } from "../../packages/gateway/src/images/imageUrl.ts"
import { jpeg, limits, padded, png } from "../../packages/gateway/test/pictures.ts"
import { soon } from "../../packages/gateway/test/stage.ts"
import { type Asked, type ImageHost, makeImageHost, publicAddress } from "./conformance/imageHost.ts"

interface Stage extends ImageHost {
  /** How much came, or the code of the refusal. */
  readonly fetch: (url: string, orgId?: OrgId) => Effect.Effect<string>
}

const patient = { GATEWAY_IMAGE_SECONDS: 30, GATEWAY_IMAGE_CONNECT_SECONDS: 30 }
const hasty = { GATEWAY_IMAGE_SECONDS: 0.3, GATEWAY_IMAGE_CONNECT_SECONDS: 0.2 }

const makeStage = Effect.fnUntraced(function* (
  settings: Readonly<Record<string, number | string>> = patient
): Effect.fn.Return<Stage, never, Scope.Scope | Ids> {
  const host = yield* makeImageHost
  const own = yield* (yield* Ids).make(OrgId)
  const fetcher = ImageFetcher.layer.pipe(
    Layer.provide(GatewayConfig.layer),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(settings))),
    Layer.provide(Layer.succeed(Internet, host.internet))
  )
  const { fetch } = Context.get(yield* Effect.orDie(Layer.build(fetcher)), ImageFetcher)
  return Object.assign(host, {
    fetch: (text: string, orgId = own) => {
      const url = imageUrl(text)
      if (url === null) return Effect.die(new Error(`${text} is no address of an image`))
      return fetch(orgId, { param: "p", url }, limits.max_bytes_per_image).pipe(
        Effect.map((bytes) => `${bytes.length} bytes`),
        Effect.catch((refusal) => Effect.succeed(`${refusal.code} ${refusal.message.startsWith("The image could not") ? "" : refusal.status}`.trim()))
      )
    }
  })
})

const sends =
  (image: Buffer, headers: Readonly<Record<string, string | number>> = {}, status = 200) =>
  ({ response }: Asked) =>
    response.writeHead(status, headers).end(image)
const movesTo =
  (location: string, status = 302) =>
  ({ response }: Asked) =>
    response.writeHead(status, { location, "set-cookie": "session=1" }).end()

const failed = "failed_to_download_image"

layer(Ids.layer, { excludeTestServices: true })("an image from an https URL", (it) => {
  it.effect("is downloaded from the checked address under the host's name, without headers that identify the caller", () =>
    Effect.gen(function* () {
      const { asked, dialled, fetch, names, paths, resolved } = yield* makeStage()
      paths.set("/a.png?sig=secret", sends(png(8, 8), { "content-type": "text/html" }))
      // A name that means something else a moment later.
      let times = 0
      names.set("a.images.test", () => (times++ === 0 ? [publicAddress, "2606:4700::1"] : ["169.254.169.254"]))
      assert.strictEqual(yield* fetch("https://a.images.test/a.png?sig=secret#part"), `${png(8, 8).length} bytes`)
      assert.deepStrictEqual(resolved, ["a.images.test"])
      assert.deepStrictEqual(dialled, [{ host: "a.images.test", addresses: [publicAddress, "2606:4700::1"] }])
      assert.strictEqual(asked[0]?.servername, "a.images.test")
      assert.deepStrictEqual(asked[0]?.request.headers, {
        accept: "image/png, image/jpeg",
        "accept-encoding": "identity",
        connection: "close",
        host: "a.images.test",
        "user-agent": "seatrial"
      })
      assert.strictEqual(yield* fetch("https://a.images.test/a.png?sig=secret"), failed)
      assert.strictEqual(dialled.length, 1)
    })
  )

  it.effect("is refused without a connection if any address of its host is private", () =>
    Effect.gen(function* () {
      const { dialled, fetch, names } = yield* makeStage({ ...patient, GATEWAY_CLUSTER_NETWORKS: "203.0.113.0/24, 2001:db8::/32" })
      const inside = [
        "10.96.0.1",
        "127.0.0.1",
        "169.254.169.254",
        "172.20.0.1",
        "192.168.0.1",
        "100.100.100.200",
        "0.0.0.0",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fd00:ec2::254",
        "::ffff:169.254.169.254",
        "::ffff:7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
        "2001:0:5db8:d822::80ff:fffe",
        "203.0.113.7",
        "::ffff:203.0.113.7",
        "2001:db8::1",
        "not an address"
      ]
      for (const address of inside) {
        for (const answers of [[address], [publicAddress, address], [address, publicAddress]]) {
          names.set("b.images.test", () => answers)
          assert.strictEqual(yield* fetch("https://b.images.test/a"), failed, answers.join(" "))
        }
      }
      names.set("b.images.test", () => [])
      assert.strictEqual(yield* fetch("https://b.images.test/a"), failed)
      assert.deepStrictEqual(dialled, [])
    })
  )

  it.effect("follows up to three redirects and checks each target like the first URL", () =>
    Effect.gen(function* () {
      const { asked, dialled, fetch, names, paths, resolved } = yield* makeStage()
      names.set("cdn.images.test", () => [publicAddress])
      names.set("inside.images.test", () => ["10.0.0.1"])
      paths.set("/image", sends(jpeg(8, 8)))
      paths.set("/1", movesTo("/2", 301))
      paths.set("/2", movesTo("https://cdn.images.test/3", 307))
      paths.set("/3", movesTo("//images.test/image", 308))
      paths.set("/0", movesTo("/1", 303))
      assert.strictEqual(yield* fetch("https://images.test/1"), `${jpeg(8, 8).length} bytes`)
      assert.deepStrictEqual(resolved, ["images.test", "images.test", "cdn.images.test", "images.test"])
      for (const { request } of asked) assert.isUndefined(request.headers.cookie)
      assert.strictEqual(yield* fetch("https://images.test/0"), failed)
      const places = [
        "http://images.test/image",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://images.test:8443/image",
        "https://a:b@images.test/image",
        "https://inside.images.test/",
        "file:///etc/passwd",
        "https://",
        ""
      ]
      for (const place of places) {
        paths.set("/away", movesTo(place))
        assert.strictEqual(yield* fetch("https://images.test/away"), failed, place)
      }
      // The same name, which now means something inside.
      paths.set("/back", movesTo("https://images.test/image"))
      let times = 0
      names.set("images.test", () => (times++ === 0 ? [publicAddress] : ["127.0.0.1"]))
      assert.strictEqual(yield* fetch("https://images.test/back"), failed)
      for (const { addresses } of dialled) assert.deepStrictEqual(addresses, [publicAddress])
    })
  )

  it.effect("must be a complete, uncompressed response with status 200", () =>
    Effect.gen(function* () {
      const { fetch, names, paths } = yield* makeStage()
      const image = png(8, 8)
      for (const status of [201, 203, 206, 304, 400, 401, 404, 500, 503]) {
        paths.set("/a", sends(image, {}, status))
        assert.strictEqual(yield* fetch("https://images.test/a"), failed, `${status}`)
      }
      const answers: ReadonlyArray<readonly [what: string, answer: (asked: Asked) => void]> = [
        ["moved to nowhere", ({ response }) => response.writeHead(302).end()],
        ["compressed", sends(image, { "content-encoding": "gzip" })],
        ["shorter than announced", ({ response }) => response.writeHead(200, { "content-length": 1_000 }).write(image, () => response.destroy())],
        ["cut off in the midst of a chunk", ({ response }) => response.writeHead(200).write(image, () => response.destroy())],
        ["closed at once", ({ request }) => request.socket.destroy()],
        ["no HTTP", ({ request }) => request.socket.end("SSH-2.0-OpenSSH_9.9\r\n")],
        ["endless headers", ({ request }) => request.socket.write(`HTTP/1.1 200 OK\r\nx: ${"a".repeat(100_000)}`)]
      ]
      for (const [what, answer] of answers) {
        paths.set("/a", answer)
        assert.strictEqual(yield* fetch("https://images.test/a"), failed, what)
      }
      names.set("elsewhere.test", () => [publicAddress])
      paths.set("/a", sends(image))
      assert.strictEqual(yield* fetch("https://elsewhere.test/a"), failed, "a certificate of another name")
      assert.strictEqual(yield* fetch("https://images.test/a"), `${image.length} bytes`)
    })
  )

  it.effect("is read up to the limit and no byte further, with or without a Content-Length", () =>
    Effect.gen(function* () {
      const { asked, fetch, paths } = yield* makeStage()
      const max = limits.max_bytes_per_image
      paths.set("/edge", sends(padded(png(8, 8), max)))
      assert.strictEqual(yield* fetch("https://images.test/edge"), `${max} bytes`)
      paths.set("/over", ({ response }) => {
        response.writeHead(200).write(padded(png(8, 8), max))
        response.end(Buffer.alloc(1))
      })
      assert.strictEqual(yield* fetch("https://images.test/over"), "image_file_too_large 400")
      paths.set("/announced", ({ response }) => response.writeHead(200, { "content-length": max + 1 }).flushHeaders())
      assert.strictEqual(yield* fetch("https://images.test/announced"), "image_file_too_large 400")
      paths.set("/endless", ({ response }) => {
        const more = () => {
          while (response.write(Buffer.alloc(65_536)));
        }
        response.writeHead(200).on("drain", more)
        more()
      })
      assert.strictEqual(yield* fetch("https://images.test/endless"), "image_file_too_large 400")
      yield* soon(() => asked.every(({ isClosed }) => isClosed()))
    })
  )

  it.effect("from a slow host times out with the common error message, and its connection is closed", () =>
    Effect.gen(function* () {
      const host = yield* makeStage(hasty)
      const { asked, fetch, paths } = host
      paths.set("/silent", () => {})
      paths.set("/trickle", ({ response }) => {
        response.writeHead(200).write(png(8, 8))
        const drip = setInterval(() => response.write("\0"), 20)
        response.once("close", () => clearInterval(drip))
      })
      paths.set("/circle", ({ response }) => void setTimeout(() => response.writeHead(302, { location: "/circle" }).end(), 90))
      for (const path of ["silent", "trickle", "circle"]) assert.strictEqual(yield* fetch(`https://images.test/${path}`), failed, path)
      yield* soon(() => asked.every(({ isClosed }) => isClosed()))
      // A host that takes the connection and says nothing, not even TLS.
      const mute = createServer()
      const open = new Set<unknown>()
      mute.on("connection", (socket) => {
        open.add(socket)
        socket
          .resume()
          .on("error", () => {})
          .once("close", () => open.delete(socket))
      })
      yield* Effect.acquireRelease(
        Effect.callback<void>((resume) => void mute.listen(0, "127.0.0.1", () => resume(Effect.void))),
        () => Effect.sync(() => mute.close())
      )
      const address = mute.address()
      host.port = address !== null && typeof address === "object" ? address.port : 0
      assert.strictEqual(yield* fetch("https://images.test/a"), failed)
      yield* soon(() => open.size === 0)
      host.port = 1
      assert.strictEqual(yield* fetch("https://images.test/a"), failed)
    })
  )

  it.effect("waits while its organization has four downloads in progress, and other organizations do not wait", () =>
    Effect.gen(function* () {
      const { asked, fetch, paths } = yield* makeStage()
      const [one, two] = [yield* (yield* Ids).make(OrgId), yield* (yield* Ids).make(OrgId)]
      paths.set("/a", () => {})
      const crowd = yield* Effect.forkChild(Effect.forEach(Array.from({ length: 6 }), () => fetch("https://images.test/a", one), { concurrency: "unbounded" }))
      yield* soon(() => asked.length === 4)
      const other = yield* Effect.forkChild(fetch("https://images.test/a", two))
      yield* soon(() => asked.length === 5)
      const answerAt = (index: number) => asked[index]?.response.writeHead(200).end(png(8, 8))
      answerAt(4)
      assert.strictEqual(yield* Fiber.join(other), `${png(8, 8).length} bytes`)
      assert.strictEqual(asked.length, 5)
      for (const index of [0, 1, 2, 3]) answerAt(index)
      yield* soon(() => asked.length === 7)
      for (const index of [5, 6]) answerAt(index)
      assert.deepStrictEqual(new Set(yield* Fiber.join(crowd)), new Set([`${png(8, 8).length} bytes`]))
    })
  )

  it.effect("is canceled if its caller disconnects", () =>
    Effect.gen(function* () {
      const { asked, fetch, paths } = yield* makeStage()
      paths.set("/a", () => {})
      const waiting = yield* Effect.forkChild(fetch("https://images.test/a"))
      yield* soon(() => asked.length === 1)
      yield* Fiber.interrupt(waiting)
      assert.isTrue(Exit.isFailure(yield* Fiber.await(waiting)))
      yield* soon(() => asked[0]?.isClosed() === true)
    })
  )
})
