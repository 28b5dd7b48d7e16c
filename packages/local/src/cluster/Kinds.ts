import { Context, Effect, Layer } from "effect"
import { builtInKinds, customKinds, type Kind } from "./Kind.ts"
import { ObjectStore } from "./ObjectStore.ts"

/** The kinds that are served now: the built-in kinds and the kinds of the stored definitions. */
export class Kinds extends Context.Service<
  Kinds,
  {
    readonly all: () => ReadonlyArray<Kind>
    readonly find: (group: string, version: string, plural: string) => Kind | undefined
    /** A served version of the resource that is stored under this name. */
    readonly storedAs: (resource: string) => Kind | undefined
  }
>()("seatrial/local/Kinds") {
  static readonly layer = Layer.effect(
    Kinds,
    Effect.gen(function* () {
      const store = yield* ObjectStore
      const all = () => [...builtInKinds, ...store.list("apiextensions.k8s.io/customresourcedefinitions").flatMap(({ object }) => customKinds(object))]
      return Kinds.of({
        all,
        find: (group, version, plural) => all().find((kind) => kind.group === group && kind.version === version && kind.plural === plural),
        storedAs: (resource) => all().find((kind) => kind.stored === resource)
      })
    })
  )
}
