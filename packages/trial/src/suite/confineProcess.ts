import { registerHooks } from "node:module"

/** What a program reaches the network or other code by, besides its imports. */
const openings = ["fetch", "WebSocket", "EventSource", "Worker", "WebAssembly"] as const

/**
 * Takes from this process, which then reads what anyone may have written, all further modules and the network: Node's permission model, under which it runs, does not
 * refuse connections. From here on no code can import a module, and none can be made of a text (`--disallow-code-generation-from-strings`). A fault of V8 itself is not
 * covered: that is what the pod's NetworkPolicy is for.
 */
export const confineProcess = (): void => {
  registerHooks({
    resolve: (specifier) => {
      throw new Error(`${specifier} may not be loaded here`)
    }
  })
  for (const name of openings) Reflect.deleteProperty(globalThis, name)
  for (const name of ["getBuiltinModule", "binding", "dlopen", "_linkedBinding"]) Reflect.deleteProperty(process, name)
}
