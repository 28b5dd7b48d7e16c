import { readFileSync } from "node:fs"
import { connect, createServer, type Socket } from "node:net"
import { join } from "node:path"
import { TLSSocket } from "node:tls"
import { assert, it } from "@effect/vitest"
import { makeEmptyDatabase } from "@seatrial/store/testing"
import { Effect, Redacted } from "effect"
import { inject } from "vitest"
import { noTrace, seatrialProcess } from "../runCommand.ts"

const fixture = (name: string) => join(import.meta.dirname, "../../../kube/test/fixtures", name)
const tls = { isServer: true, key: readFileSync(fixture("server.key")), cert: readFileSync(fixture("server.crt")) }

/** A Postgres that takes only encrypted connections, with a certificate of a private authority for 127.0.0.1; its port. */
const encryptedPostgres = (postgres: URL) =>
  Effect.acquireRelease(
    Effect.callback<{ readonly port: number; readonly close: () => void }>((resume) => {
      const sockets = new Set<Socket>()
      const server = createServer((socket) => {
        sockets.add(socket)
        socket.on("error", () => undefined)
        // The request for encryption has eight bytes; anything else is refused.
        socket.once("data", (request) => {
          if (request.length !== 8) return socket.destroy()
          socket.write("S")
          const caller = new TLSSocket(socket, tls)
          const upstream = connect(Number(postgres.port), postgres.hostname)
          sockets.add(upstream)
          for (const each of [caller, upstream]) each.on("error", () => undefined)
          caller.pipe(upstream).pipe(caller)
        })
      })
      server.listen(0, () => {
        const address = server.address()
        const port = typeof address === "object" ? (address?.port ?? 0) : 0
        const close = () => {
          for (const socket of sockets) socket.destroy()
          server.close()
        }
        resume(Effect.succeed({ port, close }))
      })
    }),
    ({ close }) => Effect.sync(close)
  )

it.live("TLS to Postgres: a private authority is trusted with NODE_EXTRA_CA_CERTS, and certificate and host name are verified", () =>
  Effect.gen(function* () {
    const url = new URL(Redacted.value(yield* makeEmptyDatabase(inject("postgres"))))
    const { port } = yield* encryptedPostgres(new URL(url))
    url.port = `${port}`
    const migrate = (host: string, sslmode: string, env: Readonly<Record<string, string>> = {}) => {
      url.hostname = host
      url.search = sslmode === "" ? "" : `?sslmode=${sslmode}`
      return seatrialProcess(["migrate"], { DATABASE_URL: url.href, ...env })
    }
    const trust = { NODE_EXTRA_CA_CERTS: fixture("ca.crt") }
    for (const mode of ["require", "verify-full"]) {
      const unknown = yield* migrate("127.0.0.1", mode)
      assert.deepStrictEqual([unknown.code, /unable to verify the first certificate|self-signed/iu.test(unknown.err)], [1, true], unknown.err)
      noTrace(unknown)
    }
    const otherName = yield* migrate("localhost", "verify-full", trust)
    assert.strictEqual(otherName.code, 1)
    assert.match(otherName.err, /does not match certificate/u)
    assert.strictEqual((yield* migrate("127.0.0.1", "", trust)).code, 1)
    const migrated = yield* migrate("127.0.0.1", "verify-full", trust)
    assert.deepStrictEqual([migrated.code, migrated.err], [0, ""])
    // libpq's parameter is not read.
    assert.strictEqual((yield* migrate("127.0.0.1", `require&sslrootcert=${fixture("ca.crt")}`)).code, 1)
  }).pipe(Effect.scoped)
)
