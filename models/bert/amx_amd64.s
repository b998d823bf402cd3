// The generator in the folder asm knows neither AMX nor bfloat16: this file is written by hand.

#include "textflag.h"
#include "funcdata.h"
#include "go_asm.h"

// The instructions of AMX, which Go's assembler lacks. Tiles 0 to 3 hold sums, 4 and 5 rows
// of activations, 6 and 7 columns of weights.
#define LDTILECFG_AX      BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define TILERELEASE       BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0xc0
#define TILEZERO_0        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc0
#define TILEZERO_1        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc8
#define TILEZERO_2        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd0
#define TILEZERO_3        BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xd8
// From (AX)(BX*1), (R8)(BX*1), (DX)(CX*1) and 64(DX)(CX*1).
#define TILELOADD_AX_4    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x24; BYTE $0x18
#define TILELOADD_R8_5    BYTE $0xc4; BYTE $0xc2; BYTE $0x7b; BYTE $0x4b; BYTE $0x2c; BYTE $0x18
#define TILELOADD_DX_6    BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x34; BYTE $0x0a
#define TILELOADD_64DX_7  BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x7c; BYTE $0x0a; BYTE $0x40
// To (AX)(CX*1), 64(AX)(CX*1), (R8)(CX*1) and 64(R8)(CX*1).
#define TILESTORED_0_AX   BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x04; BYTE $0x08
#define TILESTORED_1_64AX BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x4c; BYTE $0x08; BYTE $0x40
#define TILESTORED_2_R8   BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x14; BYTE $0x08
#define TILESTORED_3_64R8 BYTE $0xc4; BYTE $0xc2; BYTE $0x7a; BYTE $0x4b; BYTE $0x5c; BYTE $0x08; BYTE $0x40
// To bfloat16: the last register from the first, or its halves from the second and the first.
#define VCVTNEPS2BF16_Z4_Y4     BYTE $0x62; BYTE $0xf2; BYTE $0x7e; BYTE $0x48; BYTE $0x72; BYTE $0xe4
#define VCVTNEPS2BF16_Z5_Y5     BYTE $0x62; BYTE $0xf2; BYTE $0x7e; BYTE $0x48; BYTE $0x72; BYTE $0xed
#define VCVTNE2PS2BF16_Z0_Z2_Z0 BYTE $0x62; BYTE $0xf2; BYTE $0x6f; BYTE $0x48; BYTE $0x72; BYTE $0xc0
#define VCVTNE2PS2BF16_Z1_Z3_Z1 BYTE $0x62; BYTE $0xf2; BYTE $0x67; BYTE $0x48; BYTE $0x72; BYTE $0xc9
// The last tile += unsigned bytes of the first * signed bytes of the second.
#define TDPBUSD_4_6_0     BYTE $0xc4; BYTE $0xe2; BYTE $0x49; BYTE $0x5e; BYTE $0xc4
#define TDPBUSD_4_7_1     BYTE $0xc4; BYTE $0xe2; BYTE $0x41; BYTE $0x5e; BYTE $0xcc
#define TDPBUSD_5_6_2     BYTE $0xc4; BYTE $0xe2; BYTE $0x49; BYTE $0x5e; BYTE $0xd5
#define TDPBUSD_5_7_3     BYTE $0xc4; BYTE $0xe2; BYTE $0x41; BYTE $0x5e; BYTE $0xdd

// The same of pairs of bfloat16.
#define TDPBF16PS_4_6_0   BYTE $0xc4; BYTE $0xe2; BYTE $0x4a; BYTE $0x5c; BYTE $0xc4
#define TDPBF16PS_4_7_1   BYTE $0xc4; BYTE $0xe2; BYTE $0x42; BYTE $0x5c; BYTE $0xcc
#define TDPBF16PS_5_6_2   BYTE $0xc4; BYTE $0xe2; BYTE $0x4a; BYTE $0x5c; BYTE $0xd5
#define TDPBF16PS_5_7_3   BYTE $0xc4; BYTE $0xe2; BYTE $0x42; BYTE $0x5c; BYTE $0xdd

// CONFIGURE configures tiles for blocks of up to 32 of R8 rows, the activations in tiles of DI
// bytes. It sets R8 to the number of rows of a block and R9 to the first row of its second tile.
// Blocks of up to 16 rows have their last row in both tiles.
#define CONFIGURE \
	MOVQ    $32, AX \
	CMPQ    R8, AX \
	CMOVQGT AX, R8 \
	MOVQ    $16, DX \
	CMPQ    R8, DX \
	CMOVQLT R8, DX \
	MOVQ    R8, CX \
	SUBQ    DX, CX \
	MOVQ    $1, AX \
	CMOVQEQ AX, CX \
	MOVQ    R8, R9 \
	SUBQ    CX, R9 \
	VPXORQ  Z0, Z0, Z0 \
	LEAQ    config-64(SP), AX \
	VMOVDQU64 Z0, (AX) \
	MOVB    $1, (AX) \
	MOVW    $64, 16(AX) \
	MOVW    $64, 18(AX) \
	MOVW    $64, 20(AX) \
	MOVW    $64, 22(AX) \
	MOVW    DI, 24(AX) \
	MOVW    DI, 26(AX) \
	MOVW    $64, 28(AX) \
	MOVW    $64, 30(AX) \
	MOVB    DX, 48(AX) \
	MOVB    DX, 49(AX) \
	MOVB    CX, 50(AX) \
	MOVB    CX, 51(AX) \
	MOVB    DX, 52(AX) \
	MOVB    CX, 53(AX) \
	MOVQ    DI, DX \
	SHRQ    $2, DX \
	MOVB    DX, 54(AX) \
	MOVB    DX, 55(AX) \
	LDTILECFG_AX

// The limit of the arguments, its negative, 2 divided by its square, 1, 1/2, and the coefficients
// of a polynomial like that of geluGo, lowest power first. Results are within 2e-4.
DATA gelu<>+0(SB)/4, $4.0
DATA gelu<>+4(SB)/4, $-4.0
DATA gelu<>+8(SB)/4, $0.125
DATA gelu<>+12(SB)/4, $1.0
DATA gelu<>+16(SB)/4, $0.5
DATA gelu<>+20(SB)/4, $0.17597076
DATA gelu<>+24(SB)/4, $-0.08442455
DATA gelu<>+28(SB)/4, $0.05539512
DATA gelu<>+32(SB)/4, $-0.03547608
DATA gelu<>+36(SB)/4, $0.02414789
DATA gelu<>+40(SB)/4, $-0.01653451
DATA gelu<>+44(SB)/4, $0.00592136
GLOBL gelu<>(SB), RODATA|NOPTR, $48

// ROW turns a row of 32 sums into results. Z0 and Z1 hold the scales of the columns, Z2 and Z3
// their sums, Z4 and Z5 their biases, Z20 to Z31 the constants of gelu.
#define ROW(STORE) \
	VBROADCASTSS (R12), Z6 \
	VBROADCASTSS (R14), Z7 \
	VMOVAPS      Z7, Z8 \
	VFMADD213PS  Z4, Z2, Z7 \
	VFMADD213PS  Z5, Z3, Z8 \
	VCVTDQ2PS    (R9), Z9 \
	VCVTDQ2PS    64(R9), Z10 \
	VMULPS       Z0, Z9, Z9 \
	VMULPS       Z1, Z10, Z10 \
	VFMADD213PS  Z7, Z6, Z9 \
	VFMADD213PS  Z8, Z6, Z10 \
	CMPQ         product8_gelu(R13), $0 \
	JEQ          STORE \
	VMINPS       Z20, Z9, Z11 \
	VMINPS       Z20, Z10, Z12 \
	VMAXPS       Z21, Z11, Z11 \
	VMAXPS       Z21, Z12, Z12 \
	VMULPS       Z11, Z11, Z13 \
	VMULPS       Z12, Z12, Z14 \
	VFMSUB213PS  Z23, Z22, Z13 \
	VFMSUB213PS  Z23, Z22, Z14 \
	VMOVAPS      Z31, Z15 \
	VMOVAPS      Z31, Z16 \
	VFMADD213PS  Z30, Z13, Z15 \
	VFMADD213PS  Z30, Z14, Z16 \
	VFMADD213PS  Z29, Z13, Z15 \
	VFMADD213PS  Z29, Z14, Z16 \
	VFMADD213PS  Z28, Z13, Z15 \
	VFMADD213PS  Z28, Z14, Z16 \
	VFMADD213PS  Z27, Z13, Z15 \
	VFMADD213PS  Z27, Z14, Z16 \
	VFMADD213PS  Z26, Z13, Z15 \
	VFMADD213PS  Z26, Z14, Z16 \
	VFMADD213PS  Z25, Z13, Z15 \
	VFMADD213PS  Z25, Z14, Z16 \
	VFMADD213PS  Z24, Z11, Z15 \
	VFMADD213PS  Z24, Z12, Z16 \
	VMULPS       Z15, Z9, Z9 \
	VMULPS       Z16, Z10, Z10 \
STORE: \
	VMOVUPS      Z9, (R11) \
	VMOVUPS      Z10, 64(R11) \
	ADDQ         $4, R12 \
	ADDQ         $4, R14 \
	ADDQ         $128, R9 \
	ADDQ         product8_ldc(R13), R11

// func product8AMX(p *product8)
//
// It multiplies blocks of two tiles of rows with a panel. While the tiles multiply one
// block, the vector units scale the sums of the block before: the sums at R9 become results at
// R11, with the scales at R12 and the minima at R14, for R15 more rows.
//
// The tiles are configured and released here: Go does not preempt assembly, and Linux keeps
// them for a signal handler.
TEXT ·product8AMX(SB), 0, $8448-8
	NO_LOCAL_POINTERS
	MOVQ p+0(FP), R13

	// A tile of activations has DI bytes of a row: 64, or less if the depth is no multiple.
	MOVQ  $64, DI
	MOVQ  product8_depth(R13), AX
	TESTQ $63, AX
	JEQ   configure
	MOVQ  $32, DI
	TESTQ $31, AX
	JEQ   configure
	MOVQ  $16, DI

configure:
	MOVQ product8_rows(R13), R8
	CONFIGURE
	MOVQ R8, block-8(SP)
	MOVQ R9, AX
	SHLQ $7, AX
	MOVQ AX, lower-104(SP) // bytes from the sums of the first tile to those of the second
	MOVQ DI, AX
	SHLQ $5, AX
	MOVQ AX, step-16(SP) // bytes of a panel for DI inputs
	MOVQ product8_lda(R13), BX      // bytes between rows of activations
	IMULQ BX, R9
	MOVQ R9, second-24(SP) // bytes from the first tile of rows to the second

	// Rows to scale in each step of the depth, so that all are done in time.
	MOVQ product8_depth(R13), AX
	XORQ DX, DX
	DIVQ DI
	MOVQ AX, CX
	ADDQ block-8(SP), AX
	DECQ AX
	XORQ DX, DX
	DIVQ CX
	MOVQ AX, quota-32(SP)

	MOVQ product8_panels(R13), AX
	MOVQ AX, panels-40(SP)
	MOVQ product8_w(R13), AX
	MOVQ AX, weights-48(SP)
	MOVQ $0, column-56(SP) // bytes of a column's constants from the first
	LEAQ sums-8448(SP), AX
	ADDQ $63, AX
	ANDQ $-64, AX
	MOVQ AX, sums-64(SP)
	MOVQ $4096, other-72(SP)
	MOVQ $128, CX   // bytes between rows of weights and of sums
	XORQ R15, R15   // no sums to scale
	VBROADCASTSS gelu<>+0(SB), Z20
	VBROADCASTSS gelu<>+4(SB), Z21
	VBROADCASTSS gelu<>+8(SB), Z22
	VBROADCASTSS gelu<>+12(SB), Z23
	VBROADCASTSS gelu<>+16(SB), Z24
	VBROADCASTSS gelu<>+20(SB), Z25
	VBROADCASTSS gelu<>+24(SB), Z26
	VBROADCASTSS gelu<>+28(SB), Z27
	VBROADCASTSS gelu<>+32(SB), Z28
	VBROADCASTSS gelu<>+36(SB), Z29
	VBROADCASTSS gelu<>+40(SB), Z30
	VBROADCASTSS gelu<>+44(SB), Z31

panel:
	MOVQ $0, next-80(SP)
	MOVQ product8_depth(R13), AX
	SHLQ $5, AX
	ADDQ weights-48(SP), AX
	MOVQ AX, ahead-88(SP) // the next panel

block:
	// The last block overlaps the one before, so that all have the same number of rows.
	MOVQ    product8_rows(R13), AX
	SUBQ    block-8(SP), AX
	CMPQ    AX, next-80(SP)
	CMOVQGT next-80(SP), AX
	MOVQ    AX, first-96(SP)
	IMULQ   BX, AX
	ADDQ    product8_a(R13), AX
	MOVQ    AX, R8
	ADDQ    second-24(SP), R8
	MOVQ    weights-48(SP), DX
	MOVQ    product8_depth(R13), R10
	TILEZERO_0
	TILEZERO_1
	TILEZERO_2
	TILEZERO_3

step:
	MOVQ ahead-88(SP), SI
	PREFETCHT0 (SI)
	PREFETCHT0 64(SI)
	PREFETCHT0 128(SI)
	PREFETCHT0 192(SI)
	PREFETCHT0 256(SI)
	PREFETCHT0 320(SI)
	ADDQ $384, ahead-88(SP)
	TILELOADD_AX_4
	TILELOADD_DX_6
	TILELOADD_64DX_7
	TDPBUSD_4_6_0
	TDPBUSD_4_7_1
	CMPQ  block-8(SP), $16
	JLE   multiplied
	TILELOADD_R8_5
	TDPBUSD_5_6_2
	TDPBUSD_5_7_3

multiplied:
	ADDQ  DI, AX
	ADDQ  DI, R8
	ADDQ  step-16(SP), DX
	MOVQ  quota-32(SP), SI
	TESTQ R15, R15
	JEQ   scaled

row:
	ROW(store)
	DECQ R15
	JEQ  scaled
	DECQ SI
	JNE  row

scaled:
	SUBQ DI, R10
	JNE  step

	// Sums alternate between two places.
	MOVQ sums-64(SP), AX
	ADDQ other-72(SP), AX
	MOVQ AX, sums-64(SP)
	NEGQ other-72(SP)
	MOVQ AX, R9
	MOVQ block-8(SP), R15
	MOVQ AX, R8
	ADDQ lower-104(SP), R8
	TILESTORED_0_AX
	TILESTORED_1_64AX
	CMPQ  block-8(SP), $16
	JLE   stored
	TILESTORED_2_R8
	TILESTORED_3_64R8

stored:
	MOVQ    column-56(SP), DX
	MOVQ    product8_wscale(R13), AX
	VMOVUPS (AX)(DX*1), Z0
	VMOVUPS 64(AX)(DX*1), Z1
	MOVQ    product8_wsum(R13), AX
	VMOVUPS (AX)(DX*1), Z2
	VMOVUPS 64(AX)(DX*1), Z3
	MOVQ    product8_bias(R13), AX
	VMOVUPS (AX)(DX*1), Z4
	VMOVUPS 64(AX)(DX*1), Z5
	MOVQ    first-96(SP), AX
	MOVQ    product8_ldc(R13), R11
	IMULQ   AX, R11
	ADDQ    product8_c(R13), R11
	ADDQ    DX, R11
	MOVQ    product8_scale(R13), R12
	LEAQ    (R12)(AX*4), R12
	MOVQ    product8_min(R13), R14
	LEAQ    (R14)(AX*4), R14
	ADDQ    R15, AX
	MOVQ    AX, next-80(SP)
	CMPQ    AX, product8_rows(R13)
	JLT     block

	MOVQ product8_depth(R13), AX
	SHLQ $5, AX
	ADDQ AX, weights-48(SP)
	ADDQ $128, column-56(SP)
	DECQ panels-40(SP)
	JNE  panel

last:
	ROW(store_last)
	DECQ R15
	JNE  last
	TILERELEASE
	VZEROUPPER
	RET

// func productBF16(p *product32)
TEXT ·productBF16(SB), 0, $4352-8
	NO_LOCAL_POINTERS
	MOVQ  p+0(FP), R13
	MOVQ  product32_rows(R13), R8
	MOVQ  $64, DI
	CONFIGURE
	MOVQ  R8, R15 // rows of a block
	MOVQ  R9, R14 // from the first tile of rows to the second
	MOVQ  product32_lda(R13), BX
	IMULQ BX, R9  // the same in bytes
	LEAQ  sums-4352(SP), SI
	ADDQ  $63, SI
	ANDQ  $-64, SI
	MOVQ  SI, sums-72(SP)
	MOVQ  product32_panels(R13), AX
	MOVQ  AX, panels-80(SP)
	MOVQ  product32_c(R13), R12 // results of the panel
	MOVQ  product32_b(R13), SI  // weights of the panel

bf16_panel:
	XORQ R11, R11 // the first row

bf16_block:
	MOVQ    product32_rows(R13), AX
	SUBQ    R15, AX
	CMPQ    AX, R11
	CMOVQGT R11, AX
	MOVQ    AX, R11
	IMULQ   BX, AX
	ADDQ    product32_a(R13), AX
	LEAQ    (AX)(R9*1), R8
	MOVQ    SI, DX
	MOVQ    product32_depth(R13), R10
	MOVQ    $128, CX
	TILEZERO_0
	TILEZERO_1
	TILEZERO_2
	TILEZERO_3

bf16_step:
	TILELOADD_AX_4
	TILELOADD_DX_6
	TILELOADD_64DX_7
	TDPBF16PS_4_6_0
	TILELOADD_R8_5
	TDPBF16PS_4_7_1
	TDPBF16PS_5_6_2
	TDPBF16PS_5_7_3
	ADDQ $64, AX
	ADDQ $64, R8
	ADDQ $2048, DX
	SUBQ $16, R10
	JG   bf16_step

	MOVQ  product32_ldc(R13), DI
	MOVQ  DI, DX
	IMULQ R11, DX
	ADDQ  R12, DX
	MOVQ  product32_scale(R13), R10
	TESTQ R10, R10
	JNE   bf16_scale
	MOVQ  DI, CX
	MOVQ  DX, AX
	MOVQ  DI, R8
	IMULQ R14, R8
	ADDQ  DX, R8
	TILESTORED_0_AX
	TILESTORED_1_64AX
	TILESTORED_2_R8
	TILESTORED_3_64R8
	ADDQ  R15, R11
	JMP   bf16_stored

bf16_scale:
	MOVQ sums-72(SP), AX
	MOVQ R14, R8
	SHLQ $7, R8
	ADDQ AX, R8
	TILESTORED_0_AX
	TILESTORED_1_64AX
	TILESTORED_2_R8
	TILESTORED_3_64R8
	LEAQ (R10)(R11*4), R10
	ADDQ R15, R11
	MOVQ R15, R8

bf16_row:
	VBROADCASTSS (R10), Z0
	VMULPS       (AX), Z0, Z1
	VMULPS       64(AX), Z0, Z2
	VMOVUPS      Z1, (DX)
	VMOVUPS      Z2, 64(DX)
	ADDQ         $4, R10
	ADDQ         $128, AX
	ADDQ         DI, DX
	DECQ         R8
	JNE          bf16_row

bf16_stored:
	CMPQ R11, product32_rows(R13)
	JLT  bf16_block
	ADDQ $128, R12
	MOVQ product32_depth(R13), AX
	SHLQ $7, AX
	ADDQ AX, SI
	DECQ panels-80(SP)
	JNE  bf16_panel
	TILERELEASE
	VZEROUPPER
	RET

// -1e30, log2(e), 1, and the coefficients of a polynomial for 2^x on [0, 1], lowest power
// first: a minimax fit of the relative error (Lawson's iteration), which is 8e-5.
DATA exponential<>+0(SB)/4, $-1e30
DATA exponential<>+4(SB)/4, $1.44269504
DATA exponential<>+8(SB)/4, $1.0
DATA exponential<>+12(SB)/4, $0.99992528
DATA exponential<>+16(SB)/4, $0.69583318
DATA exponential<>+20(SB)/4, $0.22606758
DATA exponential<>+24(SB)/4, $0.07802449
GLOBL exponential<>(SB), RODATA|NOPTR, $28

// FOLD reduces the lanes of two registers with an operation and broadcasts the results. Z6 and
// Z7 are scratch.
#define FOLD(OP, A, B) \
	VSHUFF32X4 $0x4e, A, A, Z6 \
	VSHUFF32X4 $0x4e, B, B, Z7 \
	OP         Z6, A, A \
	OP         Z7, B, B \
	VSHUFF32X4 $0xb1, A, A, Z6 \
	VSHUFF32X4 $0xb1, B, B, Z7 \
	OP         Z6, A, A \
	OP         Z7, B, B \
	VPERMILPS  $0x4e, A, Z6 \
	VPERMILPS  $0x4e, B, Z7 \
	OP         Z6, A, A \
	OP         Z7, B, B \
	VPERMILPS  $0xb1, A, Z6 \
	VPERMILPS  $0xb1, B, Z7 \
	OP         Z6, A, A \
	OP         Z7, B, B

// func softmaxBF16(p *rowsArgs)
//
// It computes two rows at a time, the last of an odd number twice.
TEXT ·softmaxBF16(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ rowsArgs_x(DI), SI
	MOVQ rowsArgs_n(DI), R8
	MOVQ rowsArgs_rows(DI), R12
	MOVQ rowsArgs_q(DI), R9
	MOVQ rowsArgs_scale(DI), R11

	// The mask of the last vector's scores.
	MOVQ  R8, CX
	DECQ  CX
	ANDQ  $15, CX
	MOVQ  $2, AX
	SHLQ  CX, AX
	DECQ  AX
	KMOVW AX, K1
	ADDQ  $15, R8
	ANDQ  $-16, R8

	VBROADCASTSS exponential<>+0(SB), Z16
	VBROADCASTSS exponential<>+4(SB), Z17
	VBROADCASTSS exponential<>+8(SB), Z18
	VBROADCASTSS exponential<>+12(SB), Z19
	VBROADCASTSS exponential<>+16(SB), Z20
	VBROADCASTSS exponential<>+20(SB), Z21
	VBROADCASTSS exponential<>+24(SB), Z22
	VPXORQ       Y23, Y23, Y23

rows:
	// SI and DX are rows of scores, R9 and R10 of exponentials.
	MOVQ    SI, DX
	MOVQ    R9, R10
	MOVQ    R11, R13
	CMPQ    R12, $1
	JEQ     scores
	ADDQ    rowsArgs_ld(DI), DX
	ADDQ    rowsArgs_ldq(DI), R10
	ADDQ    $4, R13

scores:
	VMOVUPS   -64(SI)(R8*4), Z0
	VMOVUPS   -64(DX)(R8*4), Z1
	VBLENDMPS Z0, Z16, K1, Z0
	VBLENDMPS Z1, Z16, K1, Z1
	VMOVUPS   Z0, -64(SI)(R8*4)
	VMOVUPS   Z1, -64(DX)(R8*4)
	XORQ      AX, AX

largest:
	VMAXPS (SI)(AX*4), Z0, Z0
	VMAXPS (DX)(AX*4), Z1, Z1
	ADDQ   $16, AX
	CMPQ   AX, R8
	JLT    largest
	FOLD(VMAXPS, Z0, Z1)
	VMULPS Z17, Z0, Z0
	VMULPS Z17, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	XORQ   AX, AX

	// Zeros up to a multiple of 32, or where the next row begins.
	VMOVUPS Y23, (R9)(R8*2)
	VMOVUPS Y23, (R10)(R8*2)

exponentials:
	VMOVAPS     Z17, Z6
	VMOVAPS     Z17, Z7
	VFMSUB132PS (SI)(AX*4), Z0, Z6
	VFMSUB132PS (DX)(AX*4), Z1, Z7
	VREDUCEPS   $9, Z6, Z8 // less its floor
	VREDUCEPS   $9, Z7, Z9
	VMOVAPS     Z22, Z4
	VMOVAPS     Z22, Z5
	VFMADD213PS Z21, Z8, Z4
	VFMADD213PS Z21, Z9, Z5
	VFMADD213PS Z20, Z8, Z4
	VFMADD213PS Z20, Z9, Z5
	VFMADD213PS Z19, Z8, Z4
	VFMADD213PS Z19, Z9, Z5
	VSCALEFPS   Z6, Z4, Z4
	VSCALEFPS   Z7, Z5, Z5
	VADDPS      Z4, Z2, Z2
	VADDPS      Z5, Z3, Z3
	VCVTNEPS2BF16_Z4_Y4
	VCVTNEPS2BF16_Z5_Y5
	VMOVUPS     Y4, (R9)(AX*2)
	VMOVUPS     Y5, (R10)(AX*2)
	ADDQ        $16, AX
	CMPQ        AX, R8
	JLT         exponentials
	FOLD(VADDPS, Z2, Z3)
	VDIVPS      Z2, Z18, Z2
	VDIVPS      Z3, Z18, Z3
	VMOVSS      X2, (R11)
	VMOVSS      X3, (R13)

	MOVQ DX, SI
	ADDQ rowsArgs_ld(DI), SI
	MOVQ R10, R9
	ADDQ rowsArgs_ldq(DI), R9
	LEAQ 4(R13), R11
	SUBQ $2, R12
	JG   rows
	VZEROUPPER
	RET

// The words of two vectors, in turn.
DATA pairs<>+0(SB)/8, $0x0011000100100000
DATA pairs<>+8(SB)/8, $0x0013000300120002
DATA pairs<>+16(SB)/8, $0x0015000500140004
DATA pairs<>+24(SB)/8, $0x0017000700160006
DATA pairs<>+32(SB)/8, $0x0019000900180008
DATA pairs<>+40(SB)/8, $0x001b000b001a000a
DATA pairs<>+48(SB)/8, $0x001d000d001c000c
DATA pairs<>+56(SB)/8, $0x001f000f001e000e
GLOBL pairs<>(SB), RODATA|NOPTR, $64

// PAIR rounds a row in Z0 and Z1 and the next in Z2 and Z3, and stores the pairs of their
// entries at R9.
#define PAIR \
	VCVTNE2PS2BF16_Z0_Z2_Z0 \
	VCVTNE2PS2BF16_Z1_Z3_Z1 \
	VPERMW  Z0, Z8, Z0 \
	VPERMW  Z1, Z8, Z1 \
	VMOVUPS Z0, (R9) \
	VMOVUPS Z1, 64(R9) \
	ADDQ    $128, R9

// func packBF16(p *headArgs)
TEXT ·packBF16(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ headArgs_x(DI), SI
	MOVQ headArgs_ld(DI), DX
	MOVQ headArgs_n(DI), R8
	MOVQ headArgs_out(DI), R9
	VMOVDQU64 pairs<>(SB), Z8
	VPXORQ Z9, Z9, Z9

columns:
	MOVQ SI, AX
	MOVQ headArgs_rows(DI), R10
	SUBQ $2, R10
	JLT  odd

pair:
	VMOVUPS (AX), Z0
	VMOVUPS 64(AX), Z1
	VMOVUPS (AX)(DX*1), Z2
	VMOVUPS 64(AX)(DX*1), Z3
	LEAQ    (AX)(DX*2), AX

	PAIR
	SUBQ    $2, R10
	JGE     pair

odd:
	CMPQ    R10, $-1
	JNE     padding
	VMOVUPS (AX), Z0
	VMOVUPS 64(AX), Z1
	VPXORQ  Z2, Z2, Z2
	VPXORQ  Z3, Z3, Z3
	PAIR

padding:
	// Zero pairs up to a multiple of 16.
	MOVQ R9, R10
	SUBQ headArgs_out(DI), R10
	TESTQ $2047, R10
	JEQ  next
	VMOVUPS Z9, (R9)
	VMOVUPS Z9, 64(R9)
	ADDQ    $128, R9
	JMP     padding

next:
	ADDQ $128, SI
	SUBQ $32, R8
	JNE  columns
	VZEROUPPER
	RET

// func roundBF16(p *headArgs)
TEXT ·roundBF16(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), DI
	MOVQ headArgs_x(DI), SI
	MOVQ headArgs_rows(DI), R10
	MOVQ headArgs_out(DI), R9

round_row:
	XORQ AX, AX

round:
	VMOVUPS (SI)(AX*4), Z0
	VMOVUPS 64(SI)(AX*4), Z2
	VCVTNE2PS2BF16_Z0_Z2_Z0
	VMOVUPS Z0, (R9)
	ADDQ    $64, R9
	ADDQ    $32, AX
	CMPQ    AX, headArgs_n(DI)
	JLT     round
	ADDQ    headArgs_ld(DI), SI
	DECQ    R10
	JNE     round_row
	VZEROUPPER
	RET
