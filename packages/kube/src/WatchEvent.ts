import { Data } from "effect"

/** An existing object that does not match its schema. Only its identity is available. */
export interface Unreadable {
  /** See `keyOf`. */
  readonly key: string
  readonly uid: string | undefined
}

/**
 * An event of a list-and-watch: a full list (at the start and after every gap), then single changes. A change that
 * cannot be decoded is logged and skipped.
 */
export type WatchEvent<A> = Data.TaggedEnum<{
  /** `unreadable`: existing objects that are not in `items` because they cannot be decoded. */
  Synced: { readonly items: ReadonlyArray<A>; readonly unreadable?: ReadonlyArray<Unreadable> }
  Changed: { readonly object: A }
  Removed: { readonly object: A }
  /** The deleted object could not be decoded. */
  RemovedUnreadable: Unreadable
}>

interface WatchEventDefinition extends Data.TaggedEnum.WithGenerics<1> {
  readonly taggedEnum: WatchEvent<this["A"]>
}

export const WatchEvent = Data.taggedEnum<WatchEventDefinition>()
