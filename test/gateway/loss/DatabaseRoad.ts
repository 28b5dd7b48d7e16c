import { connect, createServer, type Socket } from "node:net"
import { Effect } from "effect"

/** The road from a gateway to Postgres, which can be cut, narrowed and blocked. */
export interface DatabaseRoad {
  readonly url: string
  /** Resets all connections and refuses new ones until `mend`. */
  readonly cut: () => void
  /** Each piece arrives so many milliseconds later, until it is mended. */
  readonly slow: (milliseconds: number) => void
  /** Holds all bytes without an error until `mend`, then delivers them. */
  readonly block: () => void
  readonly mend: () => void
}

/** Listens on loopback for as long as the scope and passes on to the address of `url`. */
export const openDatabaseRoad = (url: string) =>
  Effect.acquireRelease(
    Effect.callback<DatabaseRoad & { readonly close: () => void }>((resume) => {
      const target = new URL(url)
      const open = new Set<Socket>()
      let isCut = false
      let isBlocked = false
      let delay = 0
      let held: Array<() => void> = []

      const pass = (from: Socket, to: Socket) => {
        let due = 0
        from.on("data", (bytes: Buffer) => {
          const write = () => void (to.destroyed || to.write(bytes))
          if (isBlocked) return void held.push(write)
          const now = performance.now()
          due = Math.max(due, now + delay)
          if (due <= now) write()
          else setTimeout(write, due - now)
        })
        from.on("error", () => to.destroy())
        from.on("close", () => {
          open.delete(from)
          to.destroy()
        })
      }
      const server = createServer((near) => {
        if (isCut) return near.destroy()
        const far = connect(Number(target.port), target.hostname)
        for (const socket of [near, far]) {
          open.add(socket)
          socket.setNoDelay(true)
        }
        pass(near, far)
        pass(far, near)
      })
      const cut = () => {
        isCut = true
        for (const socket of open) socket.destroy()
      }
      server.listen(0, "127.0.0.1", () => {
        const address = server.address()
        const road = new URL(url)
        road.port = String(typeof address === "object" ? (address?.port ?? 0) : 0)
        resume(
          Effect.succeed({
            url: road.href,
            cut,
            slow: (milliseconds) => {
              delay = milliseconds
            },
            block: () => {
              isBlocked = true
            },
            mend: () => {
              isCut = false
              isBlocked = false
              delay = 0
              const all = held
              held = []
              for (const write of all) write()
            },
            close: () => {
              cut()
              server.close()
            }
          })
        )
      })
    }),
    ({ close }) => Effect.sync(close)
  )
