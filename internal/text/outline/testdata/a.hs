{-# LANGUAGE GADTs #-}
module Shop (total) where

import Data.List

-- | An order.
data Order = Order
  { orderId :: Int
  , lines   :: [Int]
  } deriving (Show)

class Priced a where
  -- | The price.
  price :: a -> Int

instance Priced Order where
  price o = total o

{- The sum
   of all. -}
total :: Order -> Int
total o = go (lines o)
  where
    go :: [Int] -> Int
    go = sum

(<+>) :: Int -> Int -> Int
a <+> b = a + b
type Name = String
