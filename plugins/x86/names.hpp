// Names of operators and attributes of linear kernels that the passes look for, interned once.
#pragma once
#include <tenon/snippet/body/body.hpp>
#include <tenon/snippet/linear/linear_names.hpp>
#include <tenon/support/name.hpp>

namespace tenon::x86 {

using snippet::kAddParameter, snippet::kHeadLanes, snippet::kLoopBegin, snippet::kLoopEnd, snippet::kSpread,
    snippet::kTailBegin, snippet::kTailEnd, snippet::kWhenBegin, snippet::kWhenEnd;

inline const Name kAbs("Abs"), kAdd("Add"), kAnd("And"), kBroadcastLoad("BroadcastLoad"), kByteTable("ByteTable"),
    kClampHigh("ClampHigh"), kClampLow("ClampLow"), kConvert("Convert"), kConvertInRange("ConvertInRange"), kDiv("Div"),
    kDivAlike("DivAlike"), kDivFour("DivFour"), kEqual("Equal"), kErf("Erf"), kExp("Exp"), kFillTail("FillTail"),
    kFirstLanes("FirstLanes"), kFma("Fma"), kFmod("Fmod"), kFoldFour("FoldFour"), kFoldLanes("FoldLanes"),
    kFoldRows("FoldRows"), kGreater("Greater"), kGreaterOrEqual("GreaterOrEqual"), kLess("Less"),
    kLessOrEqual("LessOrEqual"), kLoad("Load"), kLoadBytes("LoadBytes"), kMax("Max"), kMin("Min"), kMod("Mod"),
    kMul("Mul"), kMulByPower("MulByPower"), kNeg("Neg"), kNotEqual("NotEqual"), kNumber("Number"), kOr("Or"),
    kPow("Pow"), kPowBy("PowBy"), kPrefetchRead("PrefetchRead"), kPrefetchWrite("PrefetchWrite"),
    kReduceMax("ReduceMax"), kReduceMin("ReduceMin"), kReduceSum("ReduceSum"), kRepeatFour("RepeatFour"),
    kRoundEven("RoundEven"), kRoundInRange("RoundInRange"), kScalar("Scalar"), kSpreadFour("SpreadFour"),
    kStageLine("StageLine"), kStageRest("StageRest"), kStoreLine("StoreLine"), kSqrt("Sqrt"), kSqrtAlike("SqrtAlike"),
    kSqrtFour("SqrtFour"), kStore("Store"), kStoreBytes("StoreBytes"), kStoreBytesStreaming("StoreBytesStreaming"),
    kStoreStreaming("StoreStreaming"), kSub("Sub"), kTanh("Tanh"), kWhere("Where"), kWrap("Wrap"), kZero("Zero");
inline const Name kBits("bits"), kMagnitudes("magnitudes"), kModerate("moderate"), kNumbers("numbers"),
    kRounded("rounded");

}  // namespace tenon::x86
