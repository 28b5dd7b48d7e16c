import type { EngineWire, InferencePath, ModelCapabilities, SamplingDefaults } from "@seatrial/domain"
import { type ImagePlace, ImagePlaces } from "../images/ImagePlaces.ts"
import { invalidParameter, Refusal, unknownParameter, unsupportedParameter, unsupportedValue } from "../refusals.ts"

interface Gates {
  readonly fields: ReadonlySet<string>
  readonly formats: ReadonlySet<string>
}

const gates = new WeakMap<ModelCapabilities, Map<InferencePath, Gates>>()

const gatesOf = (endpoint: InferencePath, capabilities: ModelCapabilities): Gates => {
  const known = gates.get(capabilities)?.get(endpoint)
  if (known !== undefined) return known
  const made = {
    fields: new Set(capabilities.supported_parameters_by_endpoint[endpoint]),
    // A count takes what a message takes.
    formats: new Set(capabilities.supported_response_formats_by_endpoint[endpoint === "/v1/messages/count_tokens" ? "/v1/messages" : endpoint])
  }
  gates.set(capabilities, (gates.get(capabilities) ?? new Map<InferencePath, Gates>()).set(endpoint, made))
  return made
}

/** What of the route decides on what is taken, and on how it is told to the engine. */
export interface Target {
  /** As they were stored and verified with the revision. */
  readonly capabilities: ModelCapabilities
  /** How the engine behaves on the wire. */
  readonly wire: EngineWire
  /** Whether it serves an adapter, which its engine knows by another name than its base. */
  readonly adapted: boolean
  readonly maxModelLen: number
  /** Whether the chat template knows the role `developer`; where not, such a message goes out as `system`. */
  readonly knowsDeveloper: boolean
  /** What the model's repository says of sampling; null where that is not known. */
  readonly sampling: SamplingDefaults | null
  readonly requestId: string
  /** Separates the prefix caches of organisations; null where the engine has no field for it. */
  readonly cacheSalt: string | null
}

/** Characters that are told of a name, and of a path. */
const longestName = 128
const longestPath = 1_024

/** A step of a path whose name the caller chose: the record of the request has an asterisk instead. */
export class CallerName {
  readonly name: string
  constructor(name: string) {
    this.name = name
  }
}
type Step = string | number | CallerName

const stepText = (step: Step, isFirst: boolean, isRecorded: boolean): string => {
  if (typeof step === "number") return `[${step}]`
  const name = step instanceof CallerName ? (isRecorded ? "*" : step.name) : step
  return `${isFirst ? "" : "."}${name.slice(0, longestName)}`
}

/** The state of one check: where it is, what the model can do, and what was noticed on the way. */
export class Checking {
  readonly target: Target
  /** The top-level fields that are served on the request's path. */
  readonly fields: ReadonlySet<string>
  /** The values of `response_format.type` that are. */
  readonly formats: ReadonlySet<string>
  readonly #path: Array<Step> = []
  #images: ImagePlaces | undefined

  constructor(endpoint: InferencePath, target: Target) {
    const { fields, formats } = gatesOf(endpoint, target.capabilities)
    this.target = target
    this.fields = fields
    this.formats = formats
  }

  /** Runs a check one step deeper. After a refusal the path stays where it was. */
  within<A>(step: string | number, check: (value: unknown, at: Checking) => A, value: unknown): A {
    this.#path.push(step)
    const checked = check(value, this)
    this.#path.pop()
    return checked
  }

  /** `within` where the caller chose the name of the step. */
  withinName<A>(name: string, check: (value: unknown, at: Checking) => A, value: unknown): A {
    this.#path.push(new CallerName(name))
    const checked = check(value, this)
    this.#path.pop()
    return checked
  }

  /** The path of the value that is looked at, or of what is in it. A caller's own names may be as long as the body: the record and the answer keep their beginnings. */
  param(...deeper: ReadonlyArray<string | number>): string {
    return this.#text(deeper, false)
  }

  #text(deeper: ReadonlyArray<Step>, isRecorded: boolean): string {
    return [...this.#path, ...deeper]
      .map((step, index) => stepText(step, index === 0, isRecorded))
      .join("")
      .slice(0, longestPath)
  }

  /** The images so far. */
  get images(): ReadonlyArray<ImagePlace> {
    return this.#images?.list ?? []
  }

  /** Notes an image, and gives what stands in the engine's body until that is known. */
  image(url: string, ...deeper: ReadonlyArray<string | number>): string {
    this.#images ??= new ImagePlaces()
    return this.#images.add(this.param(...deeper), url)
  }

  #refuse(refusal: (message: string, param: string) => Refusal, message: string, deeper: ReadonlyArray<Step>): never {
    const [param, kept] = [this.#text(deeper, false), this.#text(deeper, true)]
    const refused = refusal(`${param}: ${message}.`, param)
    if (param === kept) throw refused
    const { code, message: text, status, type } = refused
    throw new Refusal({ status, type, code, message: text, param, recorded: { message: `${kept}: ${message}.`, param: kept } })
  }

  /** The wrong type, or out of range. */
  invalid(expected: string, ...deeper: ReadonlyArray<Step>): never {
    return this.#refuse(invalidParameter, expected, deeper)
  }

  /** A member that is in no API. */
  unknown(name: string): never {
    return this.#refuse(unknownParameter, "is not a known member of this request", [new CallerName(name)])
  }

  /** A field of the API that this model does not serve. */
  unsupported(...deeper: ReadonlyArray<Step>): never {
    return this.#refuse(unsupportedParameter, "the model does not support it", deeper)
  }

  /** A value of the API that this model does not serve. */
  unsupportedValue(why: string, ...deeper: ReadonlyArray<string | number>): never {
    return this.#refuse(unsupportedValue, why, deeper)
  }
}
