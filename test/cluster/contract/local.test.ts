import { describeContract } from "./describeContract.ts"
import { layerLocal } from "./open.ts"

describeContract("the local cluster", layerLocal)
