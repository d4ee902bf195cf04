"""The generator of random numbers of Go's ``math/rand``, by which the simulator of FGD and PWR draws pods and nodes.

It is an additive lagged Fibonacci generator: every 64-bit word is the sum of the words 607 and 273 before it. A seed
gives the first 607 words: a linear congruential generator changes each word of a table of the library. Seeds count
modulo 2^31 - 1.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, MutableSequence
from typing import Any, Protocol

import numpy as np

from fastsim.errors import InputError

Words = np.ndarray[Any, np.dtype[np.uint64]]

LENGTH, LAG = 607, 273
"""A word is the sum of the words so many before it."""
SEEDS = 2**31 - 1
"""Seeds that differ by this number are the same."""
SEED_OF_ZERO = 89_482_311
STARTING_DRAWS = 10
"""Numbers that the clients of the simulator draw between the pods and the nodes: one for the timeout of each."""
DRAWN = "fastsim.drawn"
"""Metadata of a workload, ``SEED:WORDS``: the seed that drew its pods, and how many words of it are gone."""


class DrawnPods(Protocol):
    """Pods that know the draws that they were made with."""

    @property
    def metadata(self) -> Mapping[str, str]:
        """Facts by name, `DRAWN` among them if there were draws."""


class GoRandom:
    """The draws of ``rand.New(rand.NewSource(seed))``, of which the first ``used`` words are gone."""

    def __init__(self, seed: int, used: int = 0) -> None:
        self.used = used
        """Words drawn so far."""
        self._word = _words_after(_first_words(seed), used).__next__

    @classmethod
    def of_run(cls, seed: int, after: DrawnPods | None = None) -> GoRandom:
        """The draws of a run of FGD's simulator with this ``-tuneseed``, without those that made the pods ``after``.

        A run begins with one number for its log.
        """
        drawn = None if after is None else drawn_by(after)
        return cls(seed, 1 if drawn is None or drawn[0] != seed else drawn[1])

    def word(self) -> int:
        """The next 64 bits (``Uint64``)."""
        self.used += 1
        return self._word()

    def below(self, bound: int) -> int:
        """A number from 0 to `bound` - 1, which is below 2^31 (``Intn``)."""
        most = SEEDS - 2**31 % bound
        drawn = self.word() >> 32 & SEEDS
        while drawn > most:
            drawn = self.word() >> 32 & SEEDS
        return drawn % bound

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Exchanges every item from the last to the second with one at or before it (``Shuffle``)."""
        word, redrawn = self._word, 0
        for last in range(len(items) - 1, 0, -1):
            bound = last + 1
            product = (word() >> 31 & 0xFFFFFFFF) * bound
            while product & 0xFFFFFFFF < bound and product & 0xFFFFFFFF < 2**32 % bound:
                redrawn += 1
                product = (word() >> 31 & 0xFFFFFFFF) * bound
            other = product >> 32
            items[last], items[other] = items[other], items[last]
        self.used += max(len(items) - 1, 0) + redrawn

    def permutation(self, count: int) -> list[int]:
        """A random order of 0 to `count` - 1 (``Perm``)."""
        order: list[int] = []
        for number in range(count):
            place = self.below(number + 1)
            order.append(number)
            order[number], order[place] = order[place], number
        return order


def drawn_by(pods: DrawnPods) -> tuple[int, int] | None:
    """The seed that drew these pods and the words that are gone of it; None if nothing was drawn."""
    noted = pods.metadata.get(DRAWN)
    if noted is None:
        return None
    if not re.fullmatch(r"-?\d{1,30}:\d{1,9}", noted):
        raise InputError(f"workload: {DRAWN}", repr(noted), "the seed of its draws and their number, such as 42:10919")
    seed, words = noted.split(":")
    return int(seed), int(words)


def _words_after(recent: Words, used: int) -> Iterator[int]:
    """The words that follow 607 words, without the first ``used``."""
    while True:
        fresh = recent[:LAG] + recent[-LAG:]
        recent = np.concatenate((recent[LAG:], fresh))
        if used < LAG:
            yield from fresh[used:].tolist()
        used = max(used - LAG, 0)


def _first_words(seed: int) -> Words:
    """The 607 words before the first draw, in the order in which the sums take them."""
    state = seed % SEEDS or SEED_OF_ZERO
    changes = []
    for draw in range(20 + 3 * LENGTH):
        state = state * 48271 % SEEDS
        if draw >= 20:
            changes.append(state)
    parts = np.array(changes, np.uint64).reshape(LENGTH, 3)
    mask = parts[:, 0] << np.uint64(40) ^ parts[:, 1] << np.uint64(20) ^ parts[:, 2]
    table = np.frombuffer(base64.b85decode(_TABLE), "<u8") ^ mask
    words: Words = np.roll(table[::-1], LENGTH - LAG)
    return words


# The table `rngCooked` of Go's math/rand (src/math/rand/rng.go) as little-endian words in base 85.
# Copyright 2009 The Go Authors, BSD-3-Clause.
_TABLE = (
    ">i?MQGfMZxTVIyCK}vhT53hmC6UAN=>y<;NT>At{j?WNx9E0em!@)O?=;U2}sfGVTch4bXVfmkGRR+sK(%0xf(a0ulp!yLsA5o`CRZylPNq6mWTrKK"
    "f#-CiBXhQ)?Ijg-t3pA2xSu^@@0&1qtPWuq9iqX7_sl1=}tbn5~vCQ|E8!Pk5l-H2~uPoyvG%{*GD-;1AlFUNJXn^xipN1l#AUUrm5u>rCmYu@A`J@"
    "M1h9!Y1JeMkJ;Zl0{+cTtUp2><kZXuL|e3@HO#i@YXY4^+X@AAU~3?cvSG32$T^;0RCG*ie9>Cq71G8AeqNwLvcnPTL<QF%CaI82#mW3HQ3Vbm24cc"
    "9Yg#FoFk^B~%4hGI{!zn9xa7TS;@dX+L5Jcn^mOOV<bI#4@4D22!JrHJD*cj(X=tP97!a_}4YaA_p~hNw^W6pGRJOmoz<c=>Lmj;ALvSMe`+rt6#43"
    "L7K<FI(v!SxLp(IW0_x^7@rwT{Q2oy(^qn9^#BpIbe$myV5mOaCQ~%_t^3E3XonMH`IT97%h+<dF$Yhe0w5)n7iu%Vh(vYap59)td4<1K-1b##nxB`"
    "nwE0Rl(@fyy(zQfK~aULM(4V*Ru!|HNpEQR1dyOSX@^jLZ4^)paLHPe|JXIn*i;p&v>2G)pxQHJ{eJUJR^YM)t?7~VDL(ky3+rbW@|jXol5!-t>r7r"
    "+mqq5fE5kcn6?p3GZs@F6Q(h@f2)nIMnre`X$zw$JY6wvM{MH%$tc3%upE}XurPSuToCBM;GoK0kHChaWBqDg(&l=T5yf{u5K2F|LpD*}R4)3#v3i="
    "J<X_rHL?AZzG5l~Fb$HSgc)#DSy51B^`;#<zoe&7c`z9Jd7xX{w2VaI&PAL<@O-PZB<-d<411?e0Bj@NGcx@h!7HVVww&?!VN+cClv(>;`sn#~;I(Z"
    "Y`?^=U|EwT~7~U~k3U_WH4~tK?BZC%LE2=tq|9-eJCd7(%CZJPvqCK#g~R6Xa~dMnrLv3vlNdz*|RU7j4*J9e4;1;BocU=?@Q|S8j+izhZ7j=Cn>y{"
    "|s@ArI|RMrB>)9nizvui+rC{6aWGSoKpyxXH-$L?pge}6sDPki~o=FB2qm%=PRc5I7mz@gMy1t-uN$Q$Da`O3_rzO@vR)wCRl4g2?cV&`j)&9QgHz3"
    "`;*f)HU0z#O8c(NZkt@j89=_0FvqWp>WO&QnYHi-n^^j|NebQ=@DGE@aZVR6-GyhOfVXh8zGAT>VYj9rB7?=vB)#vEBPO#ZP`7*g&;%cvuN*zlA?dE"
    "X3Hk7)3yvI}?R=_6`L<$uo~PLS6hG*^1<%Af#5bS_pn1hb&=Pr4j)+r07ki&5vY?On+PwlGU9bC5gh$E}r~~ARP^6zSH==$G2=cZ9zXU(aGwnHwK4g"
    "~18Dv}6p4XE7tms&>$RTJUG3iEo|2jSCYAd(=jD@f^XA%GBpFCc!rNSIJmBaKZc6RG;2mQq6bLZ_b`?c>-uKe3sGbDd)+Yb&jK<ATjlHJCnb077OW~"
    "m(dZc9^?K@Ha+MRIDuk_8eOy%x<d+}11%SZhU%?<s_84ZLDpUODNwsZMlA;jV;Sf)wu<G~#hOw=y0|z$jA0CvWZ#q2$uwJ1$N}2w>rY^k=&xCvzm|L"
    "A4PN*RLvl4EcSo8aXT!mh|CNbVB+i_6|TD6Q0fxW|jt-+RVY%G+9L=Ad=d*IYL3^R#hkVk&vIXy^1JgJ!_GIpl=4pq0myFq413RY-TECgRNt*9hjYr"
    "N`AIjVWQt--@@$cHvT-$|7268E9>O8(HD0Oo)^+@+eaccx1w>mJH-&yCC}yCVN!E*ttbzZi|c;`0o|2aTC`YmK(VbbgAh!3c1N^-22=;@^ynZP*}%u"
    "PKwl@^Cl7n3-S{nYg~)`&uQw*PG4_jtNruT`Sbrxl?jHu<RTQi(1tQax>8^O>h6K}kMbXYmA0lTmxMnph1qYZ%xuAZhP*Vb^)0`Ik!hRY;0H-NYusS"
    "DK@<X3-`}gF!NWZw~SJ+z|S@Use7?jo86mUYEt%^}U7=n(>xWhwCx8IU)R=OXUtiUx?#j30akG#t`5Qwl}bGp84RkcI%)Su@&FrO4-btG{gL*A<POT"
    "x>xSEbTSa^7jdb!ogIG=X*u^o;k)pA`~HV%<FPJ`Fh=1kiKU2I#Fj*^BCF@?p(*J+F&b$(?9_I;j{lHB!F498jk%01~mAj6`i)v@!B#%4TH)<TtnC="
    "~14z&uE(*REI`z$u}uoqbT1fwXj5Kb+Z18oK7RcLqWnRj|KvbPkH_HedQJ3Xz-8)3BZl3t(dLk2BegMg0WRWKXm`pCoo3NMF{L@5hDiEIm5t)Ntgky"
    "S`L_2Hke_|8U;PC60)?mdf{wvO7W_2Ksw%)$;(GIUsmYp*|-8?G_2bl80txiLC#YsxxA-SI&YyyB@?QmVkpT=V`jnDaiEjD&T9XXQR-}|fHFXOBwA*"
    "Hk2@GzWaPlofJ`eQraHP<O+B84W92W)iG!lK<o*(sxD29$y$rKqu#wiw37@R<__{fWxWv)zvjg8<3GIT*#FQrXVAGq2xdX<~S7t(h_u5#6t1_Nq8{2"
    "=#;V*_3)i`<A0PI;OmR36B*^o;YFUT7OhFsFh>s>pm+clfr&}(+6hZM?#wkBUfQ}%YCKr1|5G}icXis@u@L3mE;KHUN@cX(1l=zo_$VjU}z)Ee;nDe"
    "6v(Dx8(d0yt9;p?u0|*?S~cV@Wn^GP0*!WCwhIduQVcr9Z~F*he{Vbp5xWdEkuPps^n#cW%kILNm4&CxGVH38^{F-R#O4TWBW~O}CMb(rlcZR5}d~d"
    "HcbU5w;t+z0+rY5#siV4g8kVBI`-8`>cLN)lFsfo0s7o$|zk}r))!AdD$2;hT_-LMHZdUJiezdu*{x&;itDBg2E};&L1l)4KZY1H;`J`y?r7P7HTug"
    "&2ad-^(ARzUU7s=CD7nQN0K3Tb;S+{aoPJ=59D4K;k>O|Hq3ZEl`@cncA%AnQ#)!o)4++3rij>x9H^UPfu~$|oQ<zPlPH~0KMlm{#C_k#*fIVA+tz("
    "J1AuJ<mkJ_i_aO$12PX)6%&68`V0A|LDp%?%!}<NmHUW_w;)N3t{@p&u--n~7qPgvP`}W1$deK(Z$D=4~`3WcYYR-*9@M$eo7Q&L6zO=iXT^#hv_O3"
    "Tin5oyz5D`Pu${ozJ<sE!H*{fb+rxAk$EFP!~v>fDK{J$OLXj?c#|DyTSa35;ZT+6U0xy<Uy<PhLvL9X3D;2z1SQdEBq%M6!TR54+GbxZ{i3mk%r2n"
    "K}t5zj=#O=~Y;r?)mGfB7b%)rJ={liPBGaLuX7+EFA_2U_RX1d(MZ4WZ?vujaV;%j+bNBPH{IGkg;WUqW7~7!ji~9xH%AVGCrvUmPp(&^&&Yr@6X+="
    "!p;mK?pv&v-=zIYttMJt;2si!&$dz+4Qo%0@4LZR&|6-gZegNDhsIK<2r*HXSk(?jpdK)D2QNr7v~{YpUW!)-WGn`<s{M)mDJ!-f{W%UqX^3gbxOc1"
    "C7m)zrZxD5s2S{+_n9Y65bg4Iz^yt&7iZ*m;(axVY@Ix|t_OLqHCx*R;A_q&*zsH0C<4EmW3%BUd*LyzCAoc-o<iv(C1`#;t6vV4Gg+U%aW?8IED$m"
    "|L+{eE!N`Bd9@2gdM`DijfD&KoLaq_>%}2Kvj)VHC4h8|>g#64~j8LbnWBCL>grKUUrPJ%^r1werY~Mls-fM><e4ge9PjV!|w5D1;@(oA7xRCXkAT^"
    "jNJ!O?x^pMOE(fBB<p$%07+cX<1T+Bjv0EDcRHk-EyEN=OP3)OPJko5@b_<3-YatH;2A-8O4r`0yB$y<oj;g|k-wTQTE{p18v5Q3Cq0XMl82zl>3R%"
    "H{uCVHp6D5%{O6NZob&s(koxVNGRKru4V9;wLFKI~_>paB4f<=vC8`N8(&c!LYP>}v>)$NX==mr-?|_yqDa?geKgOePl9f_0L|JQGHBq<i7B;<Tz<8"
    "xcRFUL`{m7LGlloPp3pvncUMO(3f|`y$b7sy2@!zYr;0x|?6%5Uj3{$|~d!u(nj4%gqmZIAo9L2{uOoUm#k<Ey%dGj_qj2tRwwH4U#4DWO;##TCKe$"
    "t6BlM@0`4TJ#*@$kLMmdq#}8B(S;7<A^w5j#XS;XW=>~$5W$Ar`?(sqKbIJZDvWK)RqoUPwY3#eZASprDsAfGvuIHKh07z|5UE`tTX&x}5nh{@*Xm_"
    "`baKcm=bgbSs)M?g)oY;B5QinA=R=bg+55Z#b7E^Gna%Eq0s}lP8!$^Fzw9vyT?t`4m_+1L;_Cas5Qx$_Zq@jka3_UzGF}4jZL+1tJJ^9cYo}Oq@j4"
    "E4H+UfoVUYw{x_fZxPQWy>B*PNVfppgB-xS^w2dKe41>|L71<gj5BjR2Dg<I{(0Lm1VFy=JCz3DaTsj*z8OwSk;tX)`x`W@$bw&uUam=%PTfNI|D(+"
    "FXvbbv>U!~rHrDEstDxUA=8njRl)U!$YoAo9aRehn6^mnTBR6)de0TGhU(jjU4MEWW)d4Es11&~8YgSWu#m-5=?DP|p}4O34Oo<w>^ux$+sl0_X4D&"
    "=8|-aA@a$8P>F&W9x*}ZRx0?7Fqa${XKx9MoeVaL<$-@VyaTLix?#u5xpSB7^^<|nd%VTPEXP^Y|J)gB{^+4=%Fk7o^^g;abRqGJ-Z%~FKLF42y42Q"
    "dD8ys>MFgmtPrd7-ogyGE8DiPgc2MplK;J1+r-q@9weZkkbzr2uFqh8MfQ0ckscV7j4@oG)#Ed;ai)MYRj0c9UX^)u*RaOW_Q`iALo8<Y!XXbTyqkt"
    "aytIbGNz!h}v1Z~u#X<?_jz^XS8?NRqi(%7mcj{d}ItK_puW@c2&_{R<{;K=LuYn)UK*@Lq#&NzRA(m<c-?qXX&ukBslTMV-2SB491ZT(M#&%^O$@v"
    ">nQC@M^D|%~&K{k1eJaw0P<Yh{D8LZk;>-Tef3lY-?w<*NDKPPLZ3RHDk$Sp7y-sDyaaMM7@|69=f15=0Ah$Z8t2JOD9I%;G1CS{6sI3VWe+IqeL3i"
    "QNV$G)`5!@-{l&S`qwWUAW=JcU2`w$(X~Ww=Pbh06!?h|Dum1ms3%R*dw4k`WO;FDvKf)iXnTU9ID8UgJc+3i#_gEH{=Z`aMrFPbt%c)c^^m$QR(#2"
    "bZ(YH}X~r3DG>$LtS9y$9m!V8APoPZxF!9zF;bQ1E{-+eO0CsJeZkjQDgkniL&e|B8`X$!#+;jr&bYsj2Mz65L);gcmicdL<_;Ovt3<|w;riGV)nlk"
    "Wt{M%yC`aL@h~sR2X^$=t(}K7c#s61nQ+^cm&FmLql$GEL&tQQIWlh%Kum2@(3h=;#hO!6!&!;)bru>QB!iw|^>}TJt@rO^<<Idd9ZSjO5+a>HAGSA"
    "pMm++4Yw7N*t#+&W(PC?o*<Jb1cH43xrg)+{XUNDI<*S03euee%jS<2$fNT>$wsv#+FW#D>Owgy8e&=^huoRzdp-1hD1g$+wF)|&K<mH}B3O(~frR("
    "&%CfRdypszZ4GMcmI52kLI=3!%IPc$Fn%SpgQ+`b(015{q?pi=k5AO%5v;+Y$--NU%$pg<>Cmuy7)rB3_=rsuCme^_p<q=bWe6D(BTTploc5Bv`*^o"
    "m^yFh>P~dBA-L!a2s%wkw)&sC-5W-Zt8_Yr8_?b_2;CQ?Pkp_d^)mn9qy_!LAXo7ql0I8)V(^Pu<?^GU!PoD2F$U`{?Huh`aFB^upK=NKm$gZ3}i!b"
    "E-vs6bRB&g+gLk#OG)kpeqhQ0ATl{xfy;33<G3gk5v~PpT*|DNHKMJL)bg-^3r#jZ{Y!ljks=RXoe^>&gXJf2iB2Pv4V~3RKDvPr)9!-2cAA}-Q7n?"
    "hE;i7WB!d|oB2P~IX-71BK3^NZ3up2W}JSXX5%;RIOwmWN4wXOy|?1q->aS<(ZRLyYRXSCDH~f-QlaEo4s>;m3ek~#*p<qEI#Ybi+p&go_xolNy~EK"
    ")x@MYa8gR8Fv2oT*O~9_63jISYRb}Di7cmrABdkagyTw?8#R}tqy?6GikALu_CvutmP~otgUCc<RL7U{T9&rj}csa@)puhZNgvV?DFRKceUgkooP-k"
    "2@^z)ULOzM9qibD2D7d94^lp&v)lGS&~_+OLu*=AA1sT@O(q677(>=3?D!=uwt>6R!KfZ%!cBq$(TIO(<J492ioN*=oV2ePUuSY_U*E;x(FjRfA|*W"
    "Y@~mReJEJMdm}o1s^J#wEZpItrjU"
)
